"""Checkpoints whose weights somebody else quantized: compressed-tensors, GPTQ, AWQ, GGUF."""

from litert_torch.quantize.checkpoints.checkpoint import Checkpoint, open_checkpoint
from litert_torch.quantize.checkpoints.stored import StoredWeight

__all__ = ["Checkpoint", "StoredWeight", "open_checkpoint"]
