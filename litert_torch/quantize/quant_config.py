"""What `convert(..., quant_config=...)` takes for models quantized by PyTorch's pt2e flow."""

from __future__ import annotations

from dataclasses import dataclass

from litert_torch.converter.ir import Graph
from litert_torch.errors import InvalidInputError
from litert_torch.quantize import integer_kernels
from litert_torch.quantize.pt2e_quantizer import PT2EQuantizer


@dataclass(frozen=True)
class QuantConfig:
    """How a quantized module computes in LiteRT.

    Without one, integers are turned into real numbers before each op, as eager PyTorch does.

    Attributes:
        pt2e_quantizer: What the module was prepared with. Where it quantizes activations, ops run
            on integers; where it is dynamic, on integer weights.
    """

    pt2e_quantizer: PT2EQuantizer

    def __post_init__(self) -> None:
        if not isinstance(self.pt2e_quantizer, PT2EQuantizer):
            raise InvalidInputError(
                f"pt2e_quantizer must be a PT2EQuantizer, not {type(self.pt2e_quantizer).__name__}"
            )

    def apply(self, graph: Graph) -> None:
        """Replace what dequantizes, computes and quantizes by what computes on integers."""
        integer_kernels.use(graph)
