"""Mark a part of a model as one high-level op, which a delegate may run as a whole.

    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            mark = StableHLOCompositeBuilder("odml.scaled_dot_product_attention", {"scale": 0.5})
            q, k, v = mark.mark_inputs(q, k, v)
            y = ...
            return mark.mark_outputs(y)

In the file it is a STABLEHLO_COMPOSITE with that name; what was between the marks is kept beside
it, and runs where no delegate knows the name.
"""

from litert_torch.hlfb.builder import StableHLOCompositeBuilder

__all__ = ["StableHLOCompositeBuilder"]
