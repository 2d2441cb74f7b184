"""Which tensors around each op are quantized: one annotator a family of ops.

An annotator looks at one node of an exported module and, where it knows the op, says in the node's
"quantization_annotation" by which specs its operands and its result are quantized.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from litert_torch.errors import MissingDependencyError

try:
    from torchao.quantization.pt2e.quantizer import QuantizationAnnotation, SharedQuantizationSpec
except ImportError as error:
    raise MissingDependencyError(
        "pt2e quantization needs the package torchao: pip install torchao"
    ) from error

aten = torch.ops.aten

Node = torch.fx.Node
Spec = Any  # torchao's QuantizationSpecBase, which has no type information

KEY = "quantization_annotation"


@dataclass(frozen=True)
class QuantizationConfig:
    """How the tensors around an op are quantized; None leaves them as they are.

    Attributes:
        input_activation: What an op reads, except weights.
        output_activation: What it computes.
        weight: Weights.
        bias: Biases.
        fixed_qparams: Results of a known range, such as sigmoid's.
        is_qat: For training with quantization in mind.
        is_dynamic: Scales of activations are computed as the model runs.
    """

    input_activation: Spec | None
    output_activation: Spec | None
    weight: Spec | None
    bias: Spec | None = None
    fixed_qparams: Spec | None = None
    is_qat: bool = False
    is_dynamic: bool = False


Annotator = Callable[[Node, QuantizationConfig], None]

_CONVOLUTIONS = (aten.conv1d.default, aten.conv2d.default, aten.convolution.default)
_RELUS = (aten.relu.default, aten.relu_.default)
_SUMS = (aten.add.Tensor, aten.add_.Tensor)
_PRODUCTS = (aten.mul.Tensor, aten.mul_.Tensor)
_FIXED_RANGE = (aten.sigmoid.default, aten._softmax.default, aten.softmax.int)
_POOLS = (aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default)
_MAX_POOLS = (aten.max_pool2d.default, aten.max_pool2d_with_indices.default)
_SAME_SCALE = frozenset(
    [
        aten.hardtanh.default,
        aten.hardtanh_.default,
        aten.mean.default,
        aten.mean.dim,
        aten.permute.default,
        aten.transpose.int,
        aten.squeeze.dim,
        aten.unsqueeze.default,
        aten.view.default,
        aten.reshape.default,
        aten.slice.Tensor,
        aten.flatten.using_ints,
    ]
)
"""Ops whose result has the scale of what they read."""


def is_annotated(nodes: Iterable[Node]) -> bool:
    """Whether an annotator has already decided about one of the nodes."""
    return any(n.meta[KEY]._annotated for n in nodes if KEY in n.meta)


def _annotate(node: Node, inputs: dict[Node, Spec | None], output: Spec | None = None) -> None:
    node.meta[KEY] = QuantizationAnnotation(
        input_qspec_map=inputs, output_qspec=output, _annotated=True
    )


def annotate_weighted(node: Node, config: QuantizationConfig) -> None:
    """conv, linear and addmm, with the batch norm and the relu that alone read them."""
    operands = _weighted_operands(node, config)
    if operands is None or is_annotated([node]):
        return
    last, middle = node, []
    if config.is_qat and node.target in _CONVOLUTIONS:
        norm = _only_user(last, (aten.batch_norm.default,))
        if norm is not None:
            last = norm
    relu = _only_user(last, _RELUS)
    if relu is not None:
        middle, last = [last], relu
    if last is node:
        _annotate(node, operands, config.output_activation)
        return
    _annotate(node, operands)
    for inner in middle:
        if inner is not node:
            _annotate(inner, {})
    _annotate(last, {}, config.output_activation)


def _weighted_operands(node: Node, config: QuantizationConfig) -> dict[Node, Spec | None] | None:
    args = [a if isinstance(a, Node) else None for a in node.args]
    if node.target in _CONVOLUTIONS or node.target is aten.linear.default:
        x, weight, bias = args[0], args[1], args[2] if len(args) > 2 else None
    elif node.target is aten.addmm.default:
        bias, x, weight = args[:3]
    else:
        return None
    if x is None or weight is None:
        return None
    weight_spec = config.weight if _is_state(weight) else config.input_activation
    operands = {x: config.input_activation, weight: weight_spec}
    if bias is not None:
        operands[bias] = config.bias if _is_state(bias) else config.input_activation
    return operands


def _is_state(node: Node) -> bool:
    """A weight, or what is computed from weights alone."""
    if node.op == "get_attr":
        return True
    return node.op == "call_function" and all(map(_is_state, node.all_input_nodes))


def annotate_binary(node: Node, config: QuantizationConfig) -> None:
    """Add and mul of float tensors, with the relu that alone reads them."""
    if node.target not in (*_SUMS, *_PRODUCTS) or is_annotated([node]) or not _is_float(node):
        return
    inputs = {a: config.input_activation for a in node.args if isinstance(a, Node) and _is_float(a)}
    relu = _only_user(node, _RELUS)
    if relu is None:
        _annotate(node, inputs, config.output_activation)
        return
    _annotate(node, inputs)
    _annotate(relu, {}, config.output_activation)


def annotate_concatenation(node: Node, config: QuantizationConfig) -> None:
    """cat: all operands and the result share one scale."""
    if node.target is not aten.cat.default or is_annotated([node]) or not _is_float(node):
        return
    operands: Any = node.args[0]
    shared = SharedQuantizationSpec((operands[0], node))
    inputs = dict.fromkeys(operands, shared)
    inputs[operands[0]] = config.input_activation
    _annotate(node, inputs, shared)


def annotate_average_pool(node: Node, config: QuantizationConfig) -> None:
    """Adaptive average pooling keeps the scale of what it reads."""
    if node.target not in _POOLS or is_annotated([node]):
        return
    x: Any = node.args[0]
    spec = SharedQuantizationSpec(x) if _output_spec(x) is not None else config.input_activation
    _annotate(node, {x: spec}, SharedQuantizationSpec((x, node)))


def annotate_max_pool(node: Node, config: QuantizationConfig) -> None:
    """Max pooling keeps the scale of what it reads, where that has one."""
    if node.target not in _MAX_POOLS or is_annotated([node]):
        return
    x: Any = node.args[0]
    if _output_spec(x) is None:
        return
    shared = SharedQuantizationSpec(x)
    if node.target is aten.max_pool2d.default:
        _annotate(node, {x: shared}, shared)
        return
    _annotate(node, {x: shared})
    for user in node.users:
        if user.args[1] == 0:
            _annotate(user, {}, shared)


def annotate_fixed_range(node: Node, config: QuantizationConfig) -> None:
    """Sigmoid and softmax: results lie in 0..1, whatever the samples."""
    if node.target not in _FIXED_RANGE or is_annotated([node]):
        return
    if _output_spec(node.args[0]) is not None:
        _annotate(node, {}, config.fixed_qparams)


def annotate_recurrent(node: Node, config: QuantizationConfig) -> None:
    """GRU: its input, its state and its results; not what it computes inside."""
    if node.target is not aten.gru.input or is_annotated([node]):
        return
    operands: Any = node.args[:2]
    _annotate(node, dict.fromkeys(operands, config.input_activation))
    for result in node.users:
        _annotate(result, {}, config.output_activation)


def annotate_shared_scale(node: Node, config: QuantizationConfig) -> None:
    """What keeps the scale of what it reads is quantized as what it reads is."""
    if node.target not in _SAME_SCALE or is_annotated([node]):
        return
    x: Any = node.args[0]
    if _output_spec(x) is not None:
        shared = SharedQuantizationSpec(x)
        _annotate(node, {x: shared}, shared)


PHASES: tuple[tuple[Annotator, ...], ...] = (
    (annotate_weighted,),  # first: takes the relu after it
    (annotate_recurrent, annotate_binary, annotate_concatenation),
    # last, so that what they share a scale with has one
    (annotate_average_pool, annotate_max_pool, annotate_fixed_range, annotate_shared_scale),
)
"""Each phase goes over the whole graph in order of execution."""

DYNAMIC: tuple[Annotator, ...] = (annotate_weighted,)
"""Where LiteRT computes the scales of activations by itself."""


def _output_spec(node: Any) -> Spec | None:
    annotation = node.meta.get(KEY) if isinstance(node, Node) else None
    return annotation.output_qspec if annotation is not None and annotation._annotated else None


def _only_user(node: Node, targets: tuple[Any, ...]) -> Node | None:
    """The node that alone reads `node`, if it is one of `targets` and not annotated."""
    users = list(node.users)
    if len(users) == 1 and users[0].target in targets and not is_annotated(users):
        return users[0]
    return None


def _is_float(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype.is_floating_point
