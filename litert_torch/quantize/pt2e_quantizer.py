"""The quantizer that PyTorch's pt2e flow takes, for what LiteRT computes with integers.

quantizer = PT2EQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
module = prepare_pt2e(torch.export.export(module, args).module(), quantizer)
module(*args)  # and more samples, to learn the ranges
module = convert_pt2e(module)
model = litert_torch.convert(module, args, quant_config=QuantConfig(pt2e_quantizer=quantizer))
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from litert_torch.errors import InvalidInputError
from litert_torch.quantize import annotators
from litert_torch.quantize.annotators import QuantizationConfig

from torchao.quantization.pt2e.fake_quantize import FusedMovingAvgObsFakeQuantize  # isort: skip
from torchao.quantization.pt2e.observer import (  # isort: skip
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from torchao.quantization.pt2e.quantizer import (  # isort: skip
    FixedQParamsQuantizationSpec,
    QuantizationSpec,
    Quantizer,
)

__all__ = ["PT2EQuantizer", "QuantizationConfig", "get_symmetric_quantization_config"]

_SMALLEST_SCALE = 2**-12


@functools.lru_cache
def get_symmetric_quantization_config(
    is_per_channel: bool = False, is_qat: bool = False, is_dynamic: bool = False
) -> QuantizationConfig:
    """int8 weights without zero points, int8 activations with them.

    Args:
        is_per_channel: A scale for each output channel of a weight, not one for all.
        is_qat: For `prepare_qat_pt2e`.
        is_dynamic: Weights only; LiteRT quantizes activations as the model runs.

    Raises:
        InvalidInputError: both `is_qat` and `is_dynamic` (also a ValueError).
    """
    if is_qat and is_dynamic:
        raise InvalidInputError("dynamic quantization has no training: pass is_qat or is_dynamic")
    weight = _weight_spec(is_per_channel, is_qat)
    if is_dynamic:
        return QuantizationConfig(None, None, weight, is_dynamic=True)
    observer = FusedMovingAvgObsFakeQuantize if is_qat else HistogramObserver
    activation = QuantizationSpec(
        dtype=torch.int8,
        quant_min=-128,
        quant_max=127,
        qscheme=torch.per_tensor_affine,
        observer_or_fake_quant_ctr=observer.with_args(eps=_SMALLEST_SCALE),
    )
    unit_range = FixedQParamsQuantizationSpec(
        dtype=torch.int8,
        scale=1 / 256,
        zero_point=-128,
        quant_min=-128,
        quant_max=127,
        qscheme=torch.per_tensor_affine,
    )
    return QuantizationConfig(activation, activation, weight, None, unit_range, is_qat=is_qat)


def _weight_spec(is_per_channel: bool, is_qat: bool) -> Any:
    options: dict[str, Any] = {"eps": _SMALLEST_SCALE}
    if is_qat:
        observer = FusedMovingAvgObsFakeQuantize
        options["observer"] = (
            MovingAveragePerChannelMinMaxObserver if is_per_channel else MovingAverageMinMaxObserver
        )
    else:
        observer = PerChannelMinMaxObserver if is_per_channel else MinMaxObserver
    scheme = torch.per_channel_symmetric if is_per_channel else torch.per_tensor_symmetric
    return QuantizationSpec(
        dtype=torch.int8,
        quant_min=-127,
        quant_max=127,
        qscheme=scheme,
        ch_axis=0,
        observer_or_fake_quant_ctr=observer.with_args(**options),
    )


class PT2EQuantizer(Quantizer):  # type: ignore[misc]  # torchao has no type information
    """Says which tensors of an exported module are quantized, and how.

    A setting for a module's name goes before one for its type, that before one for an op, and
    `set_global` is for the rest. Each returns the quantizer, for the next call.
    """

    def __init__(self) -> None:
        super().__init__()
        self.global_config: QuantizationConfig | None = None
        self.operator_type_config: dict[Any, QuantizationConfig | None] = {}
        self.module_type_config: dict[Any, QuantizationConfig | None] = {}
        self.module_name_config: dict[str, QuantizationConfig | None] = {}

    def set_global(self, quantization_config: QuantizationConfig | None) -> PT2EQuantizer:
        """Quantize every op that no other setting covers; None leaves them in float."""
        self.global_config = quantization_config
        return self

    def set_operator_type(
        self, operator_type: Any, quantization_config: QuantizationConfig | None
    ) -> PT2EQuantizer:
        """Quantize an op, torch.ops.aten.linear or an overload of it; None leaves it in float."""
        self.operator_type_config[operator_type] = quantization_config
        return self

    def set_module_type(
        self, module_type: Callable[..., Any], quantization_config: QuantizationConfig | None
    ) -> PT2EQuantizer:
        """Quantize what modules of this class compute; None leaves it in float."""
        self.module_type_config[module_type] = quantization_config
        return self

    def set_module_name(
        self, module_name: str, quantization_config: QuantizationConfig | None
    ) -> PT2EQuantizer:
        """Quantize what the module at a path ("blocks.0.mlp") computes; None leaves it in float."""
        self.module_name_config[module_name] = quantization_config
        return self

    def transform_for_annotation(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """Make tensors of the numbers that float tensors are added to or multiplied by."""
        for node in list(model.graph.nodes):
            if node.target in (torch.ops.aten.add.Tensor, torch.ops.aten.mul.Tensor):
                _scalar_as_tensor(model, node)
        model.recompile()
        return model

    def annotate(self, model: torch.fx.GraphModule) -> torch.fx.GraphModule:
        """Mark the tensors to quantize in the nodes' meta data."""
        configs = {n: self._config_of(n) for n in model.graph.nodes if n.op == "call_function"}
        for phase in annotators.PHASES:
            for node, config in configs.items():
                for annotator in phase:
                    if config is None or (
                        config.is_dynamic and annotator not in annotators.DYNAMIC
                    ):
                        continue
                    annotator(node, config)
        return model

    def validate(self, model: torch.fx.GraphModule) -> None:
        """Nothing to check: every annotation made here can be converted."""

    def _config_of(self, node: torch.fx.Node) -> QuantizationConfig | None:
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        for path, _ in reversed(stack):
            name = _module_path(path)
            if name in self.module_name_config:
                return self.module_name_config[name]
        for _, kind in reversed(stack):
            for wanted, config in self.module_type_config.items():
                if kind in (wanted, _qualified_name(wanted)):
                    return config
        for operator in (node.target, getattr(node.target, "overloadpacket", None)):
            if operator in self.operator_type_config:
                return self.operator_type_config[operator]
        return self.global_config


def _module_path(path: str) -> str:
    """The path "blocks.0" of what strict export calls "L['self'].blocks.0"."""
    return path.removeprefix("L['self']").removeprefix(".").replace("['", ".").replace("']", "")


def _qualified_name(kind: Any) -> str:
    return f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', '')}"


def _scalar_as_tensor(model: torch.fx.GraphModule, node: torch.fx.Node) -> None:
    fake = node.meta.get("val")
    if not isinstance(fake, torch.Tensor) or not fake.dtype.is_floating_point:
        return
    for i, value in enumerate(node.args[:2]):
        if isinstance(value, (int, float)):
            taken = sum(1 for name, _ in model.named_buffers() if name.startswith("_scalar_"))
            name = f"_scalar_{taken}"
            tensor = torch.tensor(float(value), dtype=fake.dtype)
            model.register_buffer(name, tensor)
            with model.graph.inserting_before(node):
                attribute = model.graph.get_attr(name)
            mode = getattr(fake, "fake_mode", None)
            attribute.meta["val"] = mode.from_tensor(tensor, static_shapes=True) if mode else tensor
            node.update_arg(i, attribute)
