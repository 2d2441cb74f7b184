"""What user code may ask about this package at run time."""

in_oss = True
"""Whether this is the public build of the package; there is no other."""
