"""Graphs to the bytes of a .tflite file, and back."""

from litert_torch.converter.flatbuffer.read import graphs_of, metadata_of
from litert_torch.converter.flatbuffer.write import to_bytes, to_file, to_stream

__all__ = ["graphs_of", "metadata_of", "to_bytes", "to_file", "to_stream"]
