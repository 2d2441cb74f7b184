"""The ordered list of passes, with the reason for each one's place."""

from litert_torch.converter.passes import Pass, sweeping
from litert_torch.converter.passes.attention import share_repeated_heads
from litert_torch.converter.passes.dequantized import move_before_dequantize
from litert_torch.converter.passes.fusion import (
    fold_offset,
    fold_scale,
    fuse_activation,
    hoist_channel_term,
    hoist_scalar_factor,
)
from litert_torch.converter.passes.layout import channels_last
from litert_torch.converter.passes.layout.channel_order import fold_channel_order
from litert_torch.converter.passes.layout.channel_shuffle import expand_shuffles
from litert_torch.converter.passes.operands import (
    drop_broadcast,
    drop_reduced_axes,
    flatten_concatenation,
    reuse_concatenation,
    transpose_into_matmul,
)
from litert_torch.converter.passes.padding import (
    merge_pads,
    pad_into_convolution,
    zero_padding_for_max,
)
from litert_torch.converter.passes.products import (
    flat_product,
    offset_into_product,
    reshape_after_product,
    reshape_before_product,
    scale_into_product,
)
from litert_torch.converter.passes.slices import (
    slice_before_reshape,
    slice_before_transpose,
    slice_weights,
)
from litert_torch.converter.passes.strides import step_as_slice
from litert_torch.converter.passes.subexpressions import share_common_subexpressions
from litert_torch.converter.passes.transposes import (
    lower_transpose_rank,
    merge_reshapes,
    merge_transposes,
    transpose_as_reshape,
    unit_axes_before_transpose,
)

PIPELINE: tuple[Pass, ...] = (
    sweeping(move_before_dequantize),  # before layout, which takes a moved weight for an image
    sweeping(merge_transposes),  # early: leaves fewer ops for the rest to look at
    sweeping(  # early: packed projections (one product for q, k and v) become three
        slice_before_transpose,
        slice_before_reshape,
        slice_weights,
        merge_reshapes,
        name="move_slices",
    ),
    sweeping(drop_broadcast),  # before layout: a broadcast operand of lower rank pins an op
    channels_last,  # before fusion: convolutions meet their scales once nothing stands between
    sweeping(step_as_slice),  # after layout, which moves the one op, not the three
    sweeping(transpose_as_reshape),  # the layout leaves some around 1x1 images
    sweeping(merge_transposes),
    sweeping(transpose_into_matmul),  # before ranks are lowered: sees the plain last-axes swap
    sweeping(share_repeated_heads),  # after transposes of keys became flags
    sweeping(lower_transpose_rank),
    sweeping(
        merge_reshapes,
        unit_axes_before_transpose,
        reshape_after_product,
        reshape_before_product,
        drop_reduced_axes,
        name="move_reshapes",
    ),
    sweeping(scale_into_product, offset_into_product, name="fold_into_products"),
    sweeping(hoist_scalar_factor, hoist_channel_term, name="hoist_factors"),  # feeds the folds
    sweeping(fold_scale),  # scale before offset: batch norm multiplies, then adds
    sweeping(fold_offset),
    sweeping(merge_reshapes, name="merge_reshapes"),  # what stood between may be in weights now
    share_common_subexpressions,  # after folding, so that every fold sees its own convolution
    sweeping(fuse_activation),
    fold_channel_order,  # after fusion: sees convolutions alone between shuffles
    expand_shuffles,
    sweeping(merge_pads),
    sweeping(pad_into_convolution),
    sweeping(zero_padding_for_max),  # after fusion: sees fused activations
    sweeping(reuse_concatenation),
    sweeping(flatten_concatenation),  # after reuse, which wants the beginnings apart
    sweeping(flat_product),  # last: the others know products that keep their operand's axes
)
