"""Graphs to the bytes of a .tflite file."""

from litert_torch.converter.flatbuffer.write import to_bytes, to_file, to_stream

__all__ = ["to_bytes", "to_file", "to_stream"]
