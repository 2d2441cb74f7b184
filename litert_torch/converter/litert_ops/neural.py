"""Convolution, pooling, matrix products, softmax, resizing. Images are NHWC."""

from collections.abc import Callable, Sequence

from litert_torch.converter import dims
from litert_torch.converter.dims import Size
from litert_torch.converter.dtypes import DType
from litert_torch.converter.ir import Graph, TensorType, Value, const, retyped

SAME, VALID = 0, 1  # schema.Padding
Pair = tuple[int, int]


def window_output(size: Size, kernel: int, stride: int, dilation: int, padding: int) -> Size:
    """Size of a convolution's or pool's result along one axis."""
    if padding == SAME:
        return -(-size // stride) if isinstance(size, int) else (size + (stride - 1)) // stride
    return (size - (dilation * (kernel - 1) + 1)) // stride + 1


def same_padding(size: int, kernel: int, stride: int, dilation: int = 1) -> Pair:
    """The (before, after) zeros that SAME adds along one axis."""
    covered = (-(-size // stride) - 1) * stride + dilation * (kernel - 1) + 1
    total = max(covered - size, 0)
    return total // 2, total - total // 2


def batch_matmul(
    g: Graph, x: Value, y: Value, *, adj_x: bool = False, adj_y: bool = False
) -> Value:
    """Matrix products over broadcast leading axes; adj_x, adj_y transpose the last two axes."""
    rows = x.shape[-1] if adj_x else x.shape[-2]
    columns = y.shape[-2] if adj_y else y.shape[-1]
    shape = (*dims.broadcast(x.shape[:-2], y.shape[:-2]), rows, columns)
    return g.emit("BATCH_MATMUL", [x, y], retyped(x, shape=shape), adjX=adj_x, adjY=adj_y)


def conv_2d(
    g: Graph,
    x: Value,
    filter: Value,
    bias: Value | None,
    *,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: int = VALID,
) -> Value:
    """x [N,H,W,C] with filter [O,KH,KW,C/groups]; kernels need a bias, so none is zeros."""
    out, kh, kw, _ = dims.static(filter.shape)
    n, h, w, _ = x.shape
    shape = (
        n,
        window_output(h, kh, stride[0], dilation[0], padding),
        window_output(w, kw, stride[1], dilation[1], padding),
        out,
    )
    return g.emit(
        "CONV_2D",
        [x, filter, bias or _zeros(out)],
        retyped(x, shape=shape),
        padding=padding,
        strideH=stride[0],
        strideW=stride[1],
        dilationHFactor=dilation[0],
        dilationWFactor=dilation[1],
        fusedActivationFunction=0,
    )


def depthwise_conv_2d(
    g: Graph,
    x: Value,
    filter: Value,
    bias: Value | None,
    *,
    stride: Pair = (1, 1),
    dilation: Pair = (1, 1),
    padding: int = VALID,
) -> Value:
    """x [N,H,W,C] with filter [1,KH,KW,C*multiplier]."""
    _, kh, kw, out = dims.static(filter.shape)
    n, h, w, c = x.shape
    shape = (
        n,
        window_output(h, kh, stride[0], dilation[0], padding),
        window_output(w, kw, stride[1], dilation[1], padding),
        out,
    )
    return g.emit(
        "DEPTHWISE_CONV_2D",
        [x, filter, bias or _zeros(out)],
        retyped(x, shape=shape),
        padding=padding,
        strideH=stride[0],
        strideW=stride[1],
        dilationHFactor=dilation[0],
        dilationWFactor=dilation[1],
        depthMultiplier=out // int(c),
        fusedActivationFunction=0,
    )


def conv_3d(
    g: Graph,
    x: Value,
    filter: Value,
    bias: Value | None,
    *,
    stride: Sequence[int],
    dilation: Sequence[int] = (1, 1, 1),
    padding: int = VALID,
) -> Value:
    """x [N,D,H,W,C] with filter [KD,KH,KW,C,O]."""
    *kernel, _, out = dims.static(filter.shape)
    spatial = (
        window_output(s, k, st, d, padding)
        for s, k, st, d in zip(x.shape[1:-1], kernel, stride, dilation, strict=True)
    )
    operands = [x, filter] if bias is None else [x, filter, bias]
    return g.emit(
        "CONV_3D",
        operands,
        retyped(x, shape=(x.shape[0], *spatial, out)),
        padding=padding,
        strideD=stride[0],
        strideH=stride[1],
        strideW=stride[2],
        dilationDFactor=dilation[0],
        dilationHFactor=dilation[1],
        dilationWFactor=dilation[2],
        fusedActivationFunction=0,
    )


def transpose_conv(
    g: Graph,
    x: Value,
    filter: Value,
    bias: Value | None,
    *,
    output: Sequence[Size],
    stride: Pair,
    padding: int = VALID,
) -> Value:
    """x [N,H,W,C] with filter [O,KH,KW,C] to [N, *output, O]."""
    from litert_torch.converter.litert_ops.movement import shape_value

    shape = (x.shape[0], *output, filter.shape[0])
    operands = [shape_value(g, shape), filter, x]
    if bias is not None:
        operands.append(bias)
    return g.emit(
        "TRANSPOSE_CONV",
        operands,
        retyped(x, shape=shape),
        padding=padding,
        strideH=stride[0],
        strideW=stride[1],
        fusedActivationFunction=0,
    )


def fully_connected(g: Graph, x: Value, weights: Value, bias: Value | None) -> Value:
    """x [..., K] times weights [N, K] transposed, plus bias [N]."""
    return g.emit(
        "FULLY_CONNECTED",
        [x, weights, bias],
        retyped(x, shape=(*x.shape[:-1], weights.shape[0])),
        keepNumDims=True,
        fusedActivationFunction=0,
    )


def _pool(kind: str) -> Callable[..., Value]:
    def emit(g: Graph, x: Value, *, kernel: Pair, stride: Pair, padding: int = VALID) -> Value:
        n, h, w, c = x.shape
        shape = (
            n,
            window_output(h, kernel[0], stride[0], 1, padding),
            window_output(w, kernel[1], stride[1], 1, padding),
            c,
        )
        return g.emit(
            kind,
            [x],
            retyped(x, shape=shape),
            padding=padding,
            strideH=stride[0],
            strideW=stride[1],
            filterHeight=kernel[0],
            filterWidth=kernel[1],
            fusedActivationFunction=0,
        )

    emit.__doc__ = f"{kind} of [N,H,W,C]; padded elements do not count."
    return emit


average_pool_2d = _pool("AVERAGE_POOL_2D")
max_pool_2d = _pool("MAX_POOL_2D")


def resize_bilinear(
    g: Graph, x: Value, size: Sequence[Size], *, align_corners: bool, half_pixel_centers: bool
) -> Value:
    """[N,H,W,C] resampled to `size`."""
    from litert_torch.converter.litert_ops.movement import shape_value

    n, _, _, c = x.shape
    return g.emit(
        "RESIZE_BILINEAR",
        [x, shape_value(g, size)],
        retyped(x, shape=(n, *size, c)),
        alignCorners=align_corners,
        halfPixelCenters=half_pixel_centers,
    )


def resize_nearest_neighbor(
    g: Graph,
    x: Value,
    size: Sequence[Size],
    *,
    align_corners: bool = False,
    half_pixel_centers: bool = False,
) -> Value:
    """[N,H,W,C] resampled to `size`."""
    from litert_torch.converter.litert_ops.movement import shape_value

    n, _, _, c = x.shape
    return g.emit(
        "RESIZE_NEAREST_NEIGHBOR",
        [x, shape_value(g, size)],
        retyped(x, shape=(n, *size, c)),
        alignCorners=align_corners,
        halfPixelCenters=half_pixel_centers,
    )


def softmax(g: Graph, x: Value, *, beta: float = 1.0) -> Value:
    """Softmax over the last axis; the only one that LiteRT reduces."""
    return g.emit("SOFTMAX", [x], x.type, beta=beta)


def log_softmax(g: Graph, x: Value) -> Value:
    """Logarithm of softmax over the last axis."""
    return g.emit("LOG_SOFTMAX", [x], x.type)


def _zeros(count: int) -> Value:
    return const([0.0] * count, DType.FLOAT32)


def non_max_suppression_v4(
    g: Graph,
    boxes: Value,
    scores: Value,
    *,
    count: int,
    iou_threshold: float,
    score_threshold: float,
) -> list[Value]:
    """Int32 [count] indices of boxes [N, 4], best first, then zeros; and an int32 count of them."""
    operands = [
        boxes,
        scores,
        const(count, DType.INT32),
        const(iou_threshold, DType.FLOAT32),
        const(score_threshold, DType.FLOAT32),
    ]
    types = [TensorType((count,), DType.INT32), TensorType((), DType.INT32)]
    return g.emit_many("NON_MAX_SUPPRESSION_V4", operands, types)
