import pytest

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.passes.pipeline import PIPELINE
from tests.converter.graphs import (
    assert_passes_keep_results,
    build,
    kinds,
    weights,
)


def alone(name):
    return next(p for p in PIPELINE if p.__name__ == name)


def printed(function, *shapes, only):
    graph = build(function, *shapes)
    alone(only)(graph)
    return str(graph)


@pytest.mark.parametrize(
    ("p", "q", "want"),
    [
        ([1, 0, 2], [1, 0, 2], "%1:float32[2,3,4] = EXP(%0)\nreturn %1"),
        (
            [1, 2, 0],
            [1, 0, 2],
            "%1:float32[4,3,2] = TRANSPOSE(%0, [2,1,0])\n%2:float32[4,3,2] = EXP(%1)\nreturn %2",
        ),
    ],
)
def test_transposes_merge(p, q, want):
    def function(g, x):
        return tfl.exp(g, tfl.transpose(g, tfl.transpose(g, x, p), q))

    got = printed(function, (2, 3, 4), only="merge_transposes")
    assert got == f"inputs %0:float32[2,3,4]\n{want}"


def test_transpose_of_unit_axes_is_a_reshape():
    def function(g, x):
        return tfl.transpose(g, tfl.exp(g, x), [0, 3, 1, 2])

    assert kinds(assert_passes_keep_results(function, (2, 1, 1, 5))) == ["EXP", "RESHAPE"]


def test_high_rank_transpose_is_lowered_to_rank_4():
    def windows(g, x):
        grid = tfl.reshape(g, x, (2, 3, 4, 5, 2, 3))
        return tfl.exp(g, tfl.transpose(g, grid, [0, 1, 3, 2, 4, 5]))

    graph = assert_passes_keep_results(windows, (2, 12, 10, 3))
    moved = next(op for op in graph.ops if op.kind == "TRANSPOSE")
    assert moved.inputs[0].shape == (6, 4, 5, 6)


@pytest.mark.parametrize(
    "kind", ["conv_2d", "depthwise_conv_2d", "fully_connected", "transpose_conv"]
)
def test_batch_norm_and_activation_go_into_the_weights(kind):
    def function(g, x):
        if kind == "fully_connected":
            y = tfl.fully_connected(g, x, weights(4, 4), None)
        elif kind == "conv_2d":
            y = tfl.conv_2d(g, x, weights(4, 2, 3, 4), weights(4))
        elif kind == "depthwise_conv_2d":
            y = tfl.depthwise_conv_2d(g, x, weights(1, 2, 3, 4), None)
        else:
            y = tfl.transpose_conv(g, x, weights(4, 2, 2, 4), None, output=(10, 14), stride=(2, 2))
        scaled = tfl.div(g, tfl.mul(g, y, weights(1, 1, 1, 4, seed=3)), tfl.const(0.7, "float32"))
        return tfl.relu6(g, tfl.sub(g, scaled, weights(4, seed=4)))

    graph = assert_passes_keep_results(function, (2, 5, 7, 4))
    expected = [kind.upper(), *(["RELU6"] if kind == "transpose_conv" else [])]
    assert kinds(graph) == expected


def test_a_result_that_others_read_is_not_scaled():
    def function(g, x):
        y = tfl.fully_connected(g, x, weights(4, 4), None)
        return tfl.mul(g, y, weights(4, seed=3)), y

    assert kinds(assert_passes_keep_results(function, (3, 4))) == ["FULLY_CONNECTED", "MUL"]


def test_a_factor_along_another_axis_stays():
    def function(g, x):
        y = tfl.fully_connected(g, x, weights(4, 4), None)
        return tfl.mul(g, y, weights(4, 1, seed=3))

    assert kinds(assert_passes_keep_results(function, (4, 4))) == ["FULLY_CONNECTED", "MUL"]


def test_a_constant_minus_a_product_is_no_bias():
    def function(g, x):
        return tfl.sub(g, weights(4, seed=3), tfl.fully_connected(g, x, weights(4, 4), None))

    assert kinds(assert_passes_keep_results(function, (3, 4))) == ["FULLY_CONNECTED", "SUB"]


def test_attention_scale_reaches_the_weights():
    def function(g, x):
        heads = tfl.reshape(g, tfl.fully_connected(g, x, weights(6, 6), weights(6)), (2, 5, 3, 2))
        moved = tfl.transpose(g, heads, [0, 2, 1, 3])
        return tfl.exp(g, tfl.mul(g, moved, tfl.const(0.3, "float32")))

    graph = assert_passes_keep_results(function, (2, 5, 6))
    assert kinds(graph) == ["FULLY_CONNECTED", "RESHAPE", "TRANSPOSE", "EXP"]


def test_batch_norm_behind_a_reshape_reaches_the_weights():
    def function(g, x):
        flat = tfl.reshape(g, tfl.fully_connected(g, x, weights(4, 6), None), (10, 4))
        scaled = tfl.mul(g, flat, weights(4, seed=3))
        y = tfl.reshape(g, tfl.sub(g, scaled, weights(1, 4, seed=4)), (2, 5, 4))
        return tfl.exp(g, y)

    assert kinds(assert_passes_keep_results(function, (2, 5, 6))) == ["FULLY_CONNECTED", "EXP"]


@pytest.mark.parametrize("factor", [(2, 1), (1, 2)])
def test_a_factor_of_other_axes_stays_behind_a_reshape(factor):
    def function(g, x):
        y = tfl.reshape(g, tfl.fully_connected(g, x, weights(2, 6), None), (3, 2, 2))
        return tfl.mul(g, y, weights(*factor, seed=3))

    graph = assert_passes_keep_results(function, (6, 6))
    assert ("MUL" in kinds(graph)) == (factor == (2, 1))


def test_a_product_makes_rows_of_an_image_itself():
    def function(g, x):
        return tfl.fully_connected(g, tfl.reshape(g, tfl.exp(g, x), (3, 6)), weights(4, 6), None)

    graph = assert_passes_keep_results(function, (3, 1, 1, 6))
    assert kinds(graph) == ["EXP", "FULLY_CONNECTED"]
    assert graph.outputs[0].shape == (3, 4)


@pytest.mark.parametrize(("inner", "want"), [(2, [4]), (3, [5]), (4, [4, 3])])
def test_concatenations_are_one_up_to_five_operands(inner, want):
    def function(g, x, y):
        middle = tfl.concatenation(g, [y] * inner, axis=1)
        return tfl.concatenation(g, [x, middle, x], axis=1)

    graph = assert_passes_keep_results(function, (2, 3), (2, 1))
    assert [len(op.inputs) for op in graph.ops] == want


@pytest.mark.parametrize(
    ("pads", "stride", "want"),
    [
        ((1, 1), 1, ["CONV_2D"]),
        ((0, 1), 2, ["CONV_2D"]),
        ((1, 0), 2, ["PAD", "CONV_2D"]),
        ((2, 2), 1, ["PAD", "CONV_2D"]),
    ],
)
def test_padding_becomes_same_only_where_it_is(pads, stride, want):
    def function(g, x):
        padded = tfl.pad(g, x, [(0, 0), pads, pads, (0, 0)])
        return tfl.conv_2d(g, padded, weights(4, 3, 3, 3), None, stride=(stride, stride))

    assert kinds(assert_passes_keep_results(function, (2, 6, 8, 3))) == want


def test_two_paddings_are_one():
    def function(g, x):
        once = tfl.pad(g, x, [(0, 0), (1, 0), (0, 2), (0, 0)])
        return tfl.exp(g, tfl.pad(g, once, [(0, 0), (0, 3), (1, 0), (0, 0)]))

    assert kinds(assert_passes_keep_results(function, (2, 6, 8, 3))) == ["PAD", "EXP"]


@pytest.mark.parametrize(("activation", "want"), [("relu", "PAD"), ("tanh", "PADV2")])
def test_max_pool_padding_is_zero_only_over_non_negative_values(activation, want):
    def function(g, x):
        y = getattr(tfl, activation)(g, x)
        padded = tfl.pad(g, y, [(0, 0), (1, 1), (1, 1), (0, 0)], float("-inf"))
        return tfl.max_pool_2d(g, padded, kernel=(3, 3), stride=(2, 2))

    assert want in kinds(assert_passes_keep_results(function, (2, 6, 8, 3)))


def test_padding_behind_many_concatenations_is_looked_at_once():
    def function(g, x):
        y = tfl.relu(g, x)
        for _ in range(40):
            y = tfl.slice(g, tfl.concatenation(g, [y, y], axis=3), [0, 0, 0, 1], x.shape)
        padded = tfl.pad(g, y, [(0, 0), (1, 1), (1, 1), (0, 0)], float("-inf"))
        return tfl.max_pool_2d(g, padded, kernel=(3, 3), stride=(2, 2))

    assert "PADV2" not in printed(function, (1, 4, 5, 2), only="zero_padding_for_max")


@pytest.mark.parametrize("pads", [[(0, 0), (0, 3), (2, 0), (0, 0)], [(0, 0)] * 3 + [(0, 1)]])
def test_windows_of_nothing_but_padding_stay_minus_infinity(pads):
    def function(g, x):
        padded = tfl.pad(g, tfl.relu(g, x), pads, float("-inf"))
        return tfl.max_pool_2d(g, padded, kernel=(2, 2), stride=(1, 1))

    assert "PADV2" in kinds(assert_passes_keep_results(function, (2, 6, 8, 3)))


def test_broadcast_is_left_to_the_op():
    def function(g, x, y):
        return tfl.add(g, x, tfl.broadcast_to(g, y, (2, 3, 4)))

    assert kinds(assert_passes_keep_results(function, (2, 3, 4), (3, 1))) == ["ADD"]


def test_broadcast_of_all_operands_stays():
    def function(g, x, y):
        return tfl.add(g, tfl.broadcast_to(g, x, (2, 3, 4)), tfl.broadcast_to(g, y, (2, 3, 4)))

    assert "BROADCAST_TO" in kinds(assert_passes_keep_results(function, (3, 4), (3, 1)))


def test_matmul_reads_transposed_operands():
    def function(g, x, y):
        return tfl.batch_matmul(g, tfl.transpose(g, x, [0, 2, 1]), tfl.transpose(g, y, [0, 2, 1]))

    graph = assert_passes_keep_results(function, (2, 4, 3), (2, 5, 4))
    assert kinds(graph) == ["BATCH_MATMUL"]
    assert graph.ops[0].attrs == {"adjX": True, "adjY": True}


def test_equal_computations_are_done_once():
    def function(g, x):
        return tfl.add(
            g, tfl.mul(g, tfl.exp(g, x), weights(3)), tfl.mul(g, tfl.exp(g, x), weights(3))
        )

    assert kinds(assert_passes_keep_results(function, (2, 3))) == ["EXP", "MUL", "ADD"]


def test_different_constants_are_not_equal_computations():
    def function(g, x):
        return tfl.sub(g, tfl.mul(g, x, weights(3)), tfl.mul(g, x, weights(3, seed=1)))

    assert kinds(assert_passes_keep_results(function, (2, 3))).count("MUL") == 2


def test_dense_blocks_extend_their_concatenation():
    def function(g, x, y, z):
        a = tfl.concatenation(g, [x, y], axis=1)
        return tfl.exp(g, a), tfl.concatenation(g, [x, y, z], axis=1)

    graph = assert_passes_keep_results(function, (2, 1), (2, 3), (2, 2))
    assert [len(op.inputs) for op in graph.ops if op.kind == "CONCATENATION"] == [2, 2]


def test_layer_norm_goes_into_the_products_that_read_it():
    def function(g, x):
        y = tfl.add(g, tfl.mul(g, tfl.tanh(g, x), weights(6, seed=3)), weights(6, seed=4))
        first = tfl.fully_connected(g, y, weights(4, 6), weights(4))
        return first, tfl.fully_connected(g, y, weights(5, 6, seed=7), None)

    got = kinds(assert_passes_keep_results(function, (3, 6)))
    assert got == ["TANH", "FULLY_CONNECTED", "FULLY_CONNECTED"]


def test_a_factor_stays_out_of_a_table_that_is_looked_up_too():
    """Scaled, the head of a language model would be a second copy of its embeddings."""
    table = weights(7, 6)

    def function(g, x):
        rows = tfl.add(g, tfl.gather(g, table, tfl.const([5, 0, 3], "int32"), axis=0), x)
        return tfl.fully_connected(g, tfl.mul(g, rows, weights(6, seed=3)), table, None)

    graph = assert_passes_keep_results(function, (3, 6))
    assert kinds(graph) == ["GATHER", "ADD", "MUL", "FULLY_CONNECTED"]


def test_a_factor_behind_the_product_stays_out_of_a_table_that_is_looked_up_too():
    table = weights(7, 6)

    def function(g, x):
        rows = tfl.gather(g, table, tfl.cast(g, x, "int32"), axis=0)
        logits = tfl.fully_connected(g, rows, table, None)
        return tfl.mul(g, logits, tfl.const(0.125, "float32"))

    graph = assert_passes_keep_results(lambda g, x: function(g, tfl.abs(g, x)), (5,))
    assert kinds(graph) == ["ABS", "CAST", "GATHER", "FULLY_CONNECTED", "MUL"]


def test_a_factor_that_others_read_stays_out_of_the_product():
    def function(g, x):
        y = tfl.mul(g, tfl.tanh(g, x), weights(6, seed=3))
        return tfl.fully_connected(g, y, weights(4, 6), None), tfl.exp(g, y)

    got = kinds(assert_passes_keep_results(function, (3, 6)))
    assert sorted(got) == ["EXP", "FULLY_CONNECTED", "MUL", "TANH"]


def attention_heads(g, x):
    rows = tfl.reshape(g, tfl.exp(g, x), (5, 1, 6))
    heads = tfl.reshape(g, tfl.fully_connected(g, rows, weights(6, 6), None), (5, 3, 2))
    moved = tfl.reshape(g, tfl.transpose(g, heads, [1, 0, 2]), (1, 3, 5, 2))
    back = tfl.transpose(g, tfl.tanh(g, moved), [2, 0, 1, 3])
    product = tfl.fully_connected(g, tfl.reshape(g, back, (5, 6)), weights(4, 6), None)
    return tfl.tanh(g, tfl.reshape(g, product, (1, 5, 4)))


def test_reshapes_around_attention_are_merged():
    got = kinds(assert_passes_keep_results(attention_heads, (1, 5, 6)))
    assert got.count("RESHAPE") == 2
    assert got.count("TRANSPOSE") == 2


@pytest.mark.parametrize(
    ("begin", "end", "strides"),
    [
        ([0, 0, 0, 0], [2, 6, 7, 5], [1, 2, 1, 1]),
        ([0, 1, 0, 0], [2, 6, 7, 5], [1, 2, 2, 1]),
        ([1, 2, 3, 1], [2, 5, 7, 5], [1, 1, 3, 3]),
        ([0, 0, 5, 0], [2, 6, 7, 3], [2, 4, 2, 1]),
    ],
)
def test_steps_become_slices(begin, end, strides):
    def function(g, x):
        return tfl.exp(g, tfl.strided_slice(g, x, begin, end, strides))

    assert "STRIDED_SLICE" not in kinds(assert_passes_keep_results(function, (2, 6, 7, 5)))


def test_a_reduction_drops_its_axes():
    def function(g, x):
        y = tfl.mean(g, x, [1, 2], True)
        z = tfl.reduce_max(g, x, [1], True)
        return tfl.reshape(g, y, (2, 5)), tfl.reshape(g, z, (2, 35))

    assert sorted(kinds(assert_passes_keep_results(function, (2, 6, 7, 5)))) == [
        "MEAN",
        "REDUCE_MAX",
        "RESHAPE",
    ]


def test_repeated_heads_are_shared():
    def function(g, q, k, v):
        def repeated(x):
            b, heads, *matrix = x.shape
            wide = tfl.broadcast_to(
                g, tfl.reshape(g, x, (b, heads, 1, *matrix)), (b, heads, 3, *matrix)
            )
            return tfl.reshape(g, wide, (b, heads * 3, *matrix))

        scores = tfl.batch_matmul(g, q, tfl.transpose(g, repeated(k), [0, 1, 3, 2]))
        return tfl.batch_matmul(g, tfl.softmax(g, scores), repeated(v))

    graph = assert_passes_keep_results(function, (2, 6, 4, 5), (2, 2, 7, 5), (2, 2, 7, 5))
    assert set(kinds(graph)) == {"RESHAPE", "BATCH_MATMUL", "SOFTMAX"}
    assert max(v.rank for op in graph.ops for v in op.outputs) == 4


def packed_attention(g, x):
    qkv = tfl.fully_connected(g, x, weights(18, 6), weights(18))
    parts = tfl.transpose(g, tfl.reshape(g, qkv, (1, 2, 5, 3, 6)), [3, 1, 2, 0, 4])
    parts = tfl.reshape(g, parts, (3, 2, 5, 6))
    q, k, v = (
        tfl.reshape(g, tfl.slice(g, parts, [i, 0, 0, 0], (1, 2, 5, 6)), (2, 5, 6)) for i in range(3)
    )
    return tfl.batch_matmul(g, tfl.softmax(g, tfl.batch_matmul(g, q, k, adj_y=True)), v)


def test_a_packed_projection_becomes_three():
    got = kinds(assert_passes_keep_results(packed_attention, (2, 5, 6)))
    assert sorted(got) == ["BATCH_MATMUL"] * 2 + ["FULLY_CONNECTED"] * 3 + ["SOFTMAX"]


def test_a_split_projection_becomes_two():
    def gated(g, x):
        a, b = tfl.split(g, tfl.fully_connected(g, x, weights(8, 6), weights(8)), 2, axis=-1)
        return tfl.mul(g, tfl.logistic(g, a), b)

    got = kinds(assert_passes_keep_results(gated, (3, 6)))
    assert sorted(got) == ["FULLY_CONNECTED", "FULLY_CONNECTED", "LOGISTIC", "MUL"]


def test_overlapping_slices_of_a_product_stay():
    def overlapping(g, x):
        y = tfl.fully_connected(g, x, weights(8, 6), weights(8))
        return tfl.sub(g, tfl.slice(g, y, [0, 0], (3, 5)), tfl.slice(g, y, [0, 2], (3, 5)))

    got = kinds(assert_passes_keep_results(overlapping, (3, 6)))
    assert got == ["FULLY_CONNECTED", "SLICE", "SLICE", "SUB"]


def test_a_slice_of_several_split_axes_stays():
    def inner(g, x):
        y = tfl.reshape(g, tfl.exp(g, x), (2, 3, 4))
        return tfl.slice(g, y, [0, 1, 1], (2, 2, 2)), tfl.slice(g, y, [0, 0, 1], (2, 3, 2))

    assert kinds(assert_passes_keep_results(inner, (2, 12))).count("SLICE") == 2


@pytest.mark.parametrize("name", sorted({p.__name__ for p in PIPELINE}))
def test_each_pass_can_be_left_out(name):
    from litert_torch.converter import passes

    def function(g, x):
        y = tfl.conv_2d(
            g, tfl.pad(g, x, [(0, 0), (1, 1), (1, 1), (0, 0)]), weights(4, 3, 3, 3), None
        )
        y = tfl.relu(g, tfl.add(g, tfl.mul(g, y, weights(4, seed=8)), weights(4, seed=9)))
        return tfl.transpose(g, tfl.transpose(g, y, [0, 3, 1, 2]), [0, 1, 3, 2])

    def run_without(graph):
        passes.run(graph, skip=frozenset({name}))

    assert_passes_keep_results(function, (2, 6, 8, 3), only=run_without)
