"""Quantization: recipes (`Recipe`) and PyTorch's pt2e flow (`pt2e_quantizer`, `quant_config`)."""

from litert_torch.quantize.existing import quantize_file
from litert_torch.quantize.recipe import Recipe
from litert_torch.quantize.schemes import Weights, float16, float32, int2, int4, int8

__all__ = ["Recipe", "Weights", "float16", "float32", "int2", "int4", "int8", "quantize_file"]
