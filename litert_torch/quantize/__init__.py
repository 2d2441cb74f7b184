"""Quantization: PyTorch's pt2e flow (`pt2e_quantizer`, `quant_config`)."""
