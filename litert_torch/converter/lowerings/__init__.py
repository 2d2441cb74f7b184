"""ATen ops to LiteRT ops, one module per family of ops; add an op in one place here.

`aten.add.Tensor` and its like are lowered as torch.export leaves them: ops that LiteRT
has whole (linear, layer_norm, softmax, ...) are not decomposed first. Ops without a lowering are
decomposed by PyTorch's own decomposition where there is one (`converter/decompositions.py`).
"""

from litert_torch.converter.registry import Lowerings

lowers = Lowerings(__name__)

lowers_complex = Lowerings(__name__)
"""The same for calls in which a tensor or number is complex; tensors are `ComplexValue`s."""
