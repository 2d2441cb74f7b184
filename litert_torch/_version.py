"""The version, alone in a file so that building a wheel imports nothing."""

__version__ = "0.1.0"
