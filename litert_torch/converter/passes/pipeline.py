"""The ordered list of passes, with the reason for each one's place."""

from litert_torch.converter.passes import Pass, sweeping
from litert_torch.converter.passes.fusion import (
    fold_offset,
    fold_scale,
    fuse_activation,
    hoist_scalar_factor,
)
from litert_torch.converter.passes.layout import channels_last
from litert_torch.converter.passes.layout.channel_shuffle import expand_shuffles
from litert_torch.converter.passes.operands import (
    drop_broadcast,
    reuse_concatenation,
    transpose_into_matmul,
)
from litert_torch.converter.passes.padding import (
    merge_pads,
    pad_into_convolution,
    zero_padding_for_max,
)
from litert_torch.converter.passes.subexpressions import share_common_subexpressions
from litert_torch.converter.passes.transposes import (
    lower_transpose_rank,
    merge_reshapes,
    merge_transposes,
    transpose_as_reshape,
)

PIPELINE: tuple[Pass, ...] = (
    sweeping(merge_transposes),  # first: leaves fewer ops for the rest to look at
    sweeping(drop_broadcast),  # before layout: a broadcast operand of lower rank pins an op
    channels_last,  # before fusion: convolutions meet their scales once nothing stands between
    expand_shuffles,
    sweeping(transpose_as_reshape),  # the layout leaves some around 1x1 images
    sweeping(merge_transposes),
    sweeping(transpose_into_matmul),  # before ranks are lowered: sees the plain last-axes swap
    sweeping(lower_transpose_rank),
    sweeping(merge_reshapes),
    sweeping(hoist_scalar_factor),  # before folding, which it feeds
    sweeping(fold_scale),  # scale before offset: batch norm multiplies, then adds
    sweeping(fold_offset),
    share_common_subexpressions,  # after folding, so that every fold sees its own convolution
    sweeping(fuse_activation),
    sweeping(merge_pads),
    sweeping(pad_into_convolution),
    sweeping(zero_padding_for_max),  # after fusion: sees fused activations
    sweeping(reuse_concatenation),
)
