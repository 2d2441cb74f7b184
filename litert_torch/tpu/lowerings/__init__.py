"""ATen ops to `jax.numpy` and `jax.lax`, one module per family of ops; one op, one place.

A lowering takes the op's own arguments (see `converter/registry.py` for their names), with jax
arrays for tensors and Python numbers or symbolic dimensions for sizes, and returns jax arrays of
the shape and dtype that PyTorch says, 64-bit ones included. Ops without a lowering are decomposed
by PyTorch's own decomposition.
"""

from litert_torch.converter.registry import Lowerings

lowers = Lowerings(__name__, takes_graph=False)
