import networkx
import numpy as np
import pytest

from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.passes.layout.mincut import INFINITY, FlowNetwork
from tests.converter.graphs import (
    TO_FIRST,
    TO_LAST,
    assert_passes_keep_results,
    conv_nchw,
    kinds,
    weights,
)


def transposes(graph):
    return kinds(graph).count("TRANSPOSE")


def residual(g, x):
    y = tfl.relu(g, conv_nchw(g, x, 5, padding=0))
    z = conv_nchw(g, y, 5, padding=0, seed=2)
    return tfl.relu(g, tfl.add(g, y, z))


def scaled_by_channel(g, x):
    y = conv_nchw(g, x, 5, padding=0)
    gate = tfl.logistic(g, tfl.mean(g, y, [2, 3], True))
    return tfl.mul(g, tfl.add(g, tfl.mul(g, y, weights(1, 5, 1, 1)), weights(5, 1, 1)), gate)


def concatenated(g, x):
    y = conv_nchw(g, x, 4, padding=0)
    z = conv_nchw(g, y, 6, padding=0, seed=3)
    return conv_nchw(g, tfl.concatenation(g, [y, z, y], axis=1), 2, padding=0, seed=4)


def padded_and_sliced(g, x):
    y = tfl.pad(g, conv_nchw(g, x, 4, padding=0), [(0, 0), (1, 2), (0, 3), (2, 0)])
    z = tfl.slice(g, y, [0, 1, 2, 0], [y.shape[0], 5, 4, 6])
    return conv_nchw(g, z, 3, padding=0, seed=2)


def split_in_two(g, x):
    a, b = tfl.split(g, conv_nchw(g, x, 6, padding=0), 2, axis=1)
    return tfl.concatenation(g, [conv_nchw(g, a, 3, padding=0, seed=6), b], axis=1)


def shuffled(g, x):
    y = conv_nchw(g, x, 6, padding=0)
    n, c, h, w = y.shape
    grouped = tfl.reshape(g, y, (n, 2, c // 2, h, w))
    swapped = tfl.transpose(g, grouped, [0, 2, 1, 3, 4])
    return conv_nchw(g, tfl.reshape(g, swapped, (n, c, h, w)), 3, padding=0, seed=2)


def shuffled_halves(g, x):
    halves = [conv_nchw(g, x, 4, padding=0, seed=s) for s in (5, 6)]
    y = tfl.concatenation(g, halves, axis=1)
    grouped = tfl.reshape(g, y, (2, 2, 4, 6, 7))
    swapped = tfl.transpose(g, grouped, [0, 2, 1, 3, 4])
    return conv_nchw(g, tfl.reshape(g, swapped, (2, 8, 6, 7)), 3, padding=0, seed=2)


CASES = {
    "residual": (residual, (2, 5, 6, 7), 2),
    "scaled by channel": (scaled_by_channel, (2, 3, 6, 7), 2),
    "concatenated": (concatenated, (2, 3, 6, 7), 2),
    "padded and sliced": (padded_and_sliced, (2, 3, 6, 7), 2),
    "split": (split_in_two, (2, 3, 6, 7), 2),
    "shuffled": (shuffled, (2, 3, 6, 7), 2),
    "shuffled halves": (shuffled_halves, (2, 3, 6, 7), 2),
}


@pytest.mark.parametrize(("function", "shape", "most"), CASES.values(), ids=list(CASES))
def test_transposes_are_left_at_the_edges(function, shape, most):
    graph = assert_passes_keep_results(function, shape)
    assert transposes(graph) <= most


def shuffle_units(g, x):
    """Three units of a ShuffleNet stage, then a depthwise and a plain convolution of all."""
    y = conv_nchw(g, x, 6, padding=0)
    for i in range(3):
        left, right = tfl.split(g, y, 2, axis=1)
        right = tfl.relu(g, conv_nchw(g, right, 3, kernel=1, seed=10 + i))
        n, c, h, w = y.shape
        grouped = tfl.reshape(g, tfl.concatenation(g, [left, right], axis=1), (n, 2, 3, h, w))
        y = tfl.reshape(g, tfl.transpose(g, grouped, [0, 2, 1, 3, 4]), (n, c, h, w))
    last = tfl.transpose(g, y, TO_LAST)
    depthwise = tfl.depthwise_conv_2d(g, last, weights(1, 3, 3, 6, seed=20), weights(6, seed=21))
    first = tfl.transpose(g, depthwise, TO_FIRST)
    return conv_nchw(g, first, 5, kernel=1, seed=22), conv_nchw(g, y, 4, kernel=1, seed=23)


def test_shuffles_go_into_the_weights():
    graph = assert_passes_keep_results(shuffle_units, (2, 3, 6, 7))
    assert set(kinds(graph)) == {
        "TRANSPOSE",
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "CONCATENATION",
        "SLICE",
        "SPLIT",
    }


def test_a_shuffle_that_is_read_as_it_is_stays():
    def function(g, x):
        y = conv_nchw(g, x, 6, padding=0)
        grouped = tfl.reshape(g, y, (2, 2, 3, 6, 7))
        y = tfl.reshape(g, tfl.transpose(g, grouped, [0, 2, 1, 3, 4]), (2, 6, 6, 7))
        return conv_nchw(g, y, 5, kernel=1, seed=3), tfl.tanh(g, y)

    assert "SPLIT" in kinds(assert_passes_keep_results(function, (2, 3, 6, 7)))


@pytest.mark.parametrize("with_itself", [True, False])
def test_channels_that_are_read_twice_count_twice(with_itself):
    def function(g, x):
        y = conv_nchw(g, x, 4, padding=0)
        grouped = tfl.reshape(g, y, (2, 2, 2, 6, 7))
        mixed = tfl.reshape(g, tfl.transpose(g, grouped, [0, 2, 1, 3, 4]), (2, 4, 6, 7))
        twice = tfl.concatenation(g, [mixed if with_itself else y, mixed], axis=1)
        return conv_nchw(g, twice, 5, kernel=1, seed=3)

    assert_passes_keep_results(function, (2, 3, 6, 7))


def test_no_transpose_with_channel_last_edges():
    def function(g, x):
        return tfl.transpose(g, residual(g, tfl.transpose(g, x, TO_FIRST)), TO_LAST)

    assert transposes(assert_passes_keep_results(function, (2, 6, 7, 5))) == 0


def test_classifier_has_one_transpose():
    def function(g, x):
        y = tfl.mean(g, residual(g, x), [2, 3], True)
        return tfl.fully_connected(g, tfl.reshape(g, y, (2, 5)), weights(3, 5), None)

    assert transposes(assert_passes_keep_results(function, (2, 5, 6, 7))) == 1


def test_flatten_goes_into_the_weights():
    def function(g, x):
        y = conv_nchw(g, x, 4, padding=0)
        flat = tfl.reshape(g, y, (2, 4 * 6 * 7))
        return tfl.fully_connected(g, flat, weights(3, 4 * 6 * 7), None)

    assert transposes(assert_passes_keep_results(function, (2, 3, 6, 7))) == 1


def test_patches_become_tokens_without_a_transpose_between():
    def function(g, x):
        y = conv_nchw(g, x, 4, kernel=2, stride=(2, 2))
        tokens = tfl.transpose(g, tfl.reshape(g, y, (2, 4, 12)), [0, 2, 1])
        return tfl.fully_connected(g, tokens, weights(3, 4), None)

    assert transposes(assert_passes_keep_results(function, (2, 3, 6, 8))) == 1


def test_tokens_become_an_image_without_a_transpose_between():
    def function(g, x):
        y = tfl.fully_connected(g, x, weights(4, 3), None)
        image = tfl.reshape(g, tfl.transpose(g, y, [0, 2, 1]), (2, 4, 3, 5))
        return conv_nchw(g, image, 2, padding=0)

    assert transposes(assert_passes_keep_results(function, (2, 15, 3))) == 1


def test_an_argmax_over_channels_reads_either_layout():
    def function(g, x):
        return tfl.arg_max(g, conv_nchw(g, x, 4, padding=0), 1)

    assert transposes(assert_passes_keep_results(function, (2, 3, 6, 7))) == 1


def test_ops_of_transformers_are_left_alone():
    def function(g, x):
        return tfl.transpose(g, tfl.relu(g, tfl.transpose(g, x, [0, 2, 1, 3])), [0, 2, 1, 3])

    assert transposes(assert_passes_keep_results(function, (2, 3, 4, 5))) == 2


@pytest.mark.parametrize("seed", range(30))
def test_minimum_cut_is_that_of_networkx(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 12))
    ours, theirs = FlowNetwork(), networkx.DiGraph()
    for _ in range(n * 3):
        a, b = (int(i) for i in rng.choice(n, 2, replace=False))
        capacity = (
            INFINITY if rng.random() < 0.1 and (a, b) != (0, n - 1) else float(rng.integers(9))
        )
        if theirs.has_edge(a, b) or {a, b} == {0, n - 1}:
            continue
        ours.add_edge(a, b, capacity)
        theirs.add_edge(a, b, capacity=capacity)
    theirs.add_nodes_from([0, n - 1])
    side = ours.source_side(0, n - 1)
    try:
        value, _ = networkx.minimum_cut(theirs, 0, n - 1)
    except networkx.NetworkXUnbounded:
        return
    cut = sum(d["capacity"] for a, b, d in theirs.edges(data=True) if a in side and b not in side)
    assert cut == value
    assert 0 in side
    assert n - 1 not in side
