import pytest
import torch

from tests.op_case import (
    assert_matches_torch,
    f32,
    graph_of,
    integers,
    lowered_alone,
    op_case,
    run,
)

aten = torch.ops.aten
INF, NAN = float("inf"), float("nan")
EDGES = torch.tensor(
    [[-40.0, -9, -3, -1, -0.5, 0, 0.1, 0.5], [1, 2.5, 3, 5.9, 6, 7, 21, 40]],
)
SPECIAL = torch.tensor([NAN, INF, -INF, -0.0])

CASES = [
    *[
        op_case(op, x)
        for op in (
            aten.relu.default,
            aten.relu6.default,
            aten.hardtanh.default,
            aten.hardsigmoid.default,
            aten.hardswish.default,
            aten.sigmoid.default,
            aten.tanh.default,
            aten.gelu.default,
            aten.silu.default,
            aten.mish.default,
            aten.elu.default,
            aten.selu.default,
            aten.celu.default,
            aten.leaky_relu.default,
            aten.softplus.default,
            aten.log_sigmoid.default,
            aten.log_sigmoid_forward.default,
            aten.hardshrink.default,
            aten.softshrink.default,
        )
        for x in (EDGES, f32(2, 3, 5), f32())
    ],
    *[
        op_case(op, SPECIAL)
        for op in (
            aten.relu.default,
            aten.relu6.default,
            aten.hardtanh.default,
            aten.hardsigmoid.default,
            aten.sigmoid.default,
            aten.tanh.default,
            aten.leaky_relu.default,
            aten.hardshrink.default,
            aten.softshrink.default,
        )
    ],
    op_case(aten.threshold.default, SPECIAL, 0.1, -7),
    op_case(aten.relu.default, integers(2, 3)),
    op_case(aten.relu.default, integers(2, 3, dtype=torch.int8)),
    op_case(aten.sigmoid.default, integers(2, 3)),
    op_case(aten.tanh.default, integers(2, 3, dtype=torch.int64)),
    op_case(aten.hardtanh.default, EDGES, 0, 1),
    op_case(aten.hardtanh.default, EDGES, -2, 0.5),
    op_case(aten.hardtanh.default, integers(2, 3), -2, 3),
    op_case(aten.gelu.default, EDGES, approximate="tanh"),
    op_case(aten.elu.default, EDGES, 1.7),
    op_case(aten.elu.default, EDGES, 1.7, 0.5, 2.0),
    op_case(aten.elu.default, EDGES, 1, 3),
    op_case(aten.celu.default, EDGES, 0.7),
    op_case(aten.leaky_relu.default, EDGES, -0.2),
    op_case(aten.leaky_relu.default, EDGES, 1.5),
    op_case(aten.leaky_relu.default, EDGES, 0),
    op_case(aten.rrelu.default, EDGES),
    op_case(aten.prelu.default, f32(2, 4, 3, 5), torch.tensor([0.1, -0.3, 2.0, 0.7])),
    op_case(aten.prelu.default, torch.tensor(-2.0), torch.tensor([0.3])),
    op_case(aten.prelu.default, f32(2, 4), torch.tensor([0.1, -0.3, 2.0, 0.7])),
    op_case(aten.prelu.default, f32(2, 4, 3), torch.tensor([0.1])),
    op_case(aten.prelu.default, f32(5), torch.tensor([0.1])),
    op_case(aten._prelu_kernel.default, f32(2, 4, 3), f32(1, 4, 1)),
    op_case(aten.softplus.default, EDGES, 3.0, 2.0),
    op_case(aten.softplus.default, EDGES, 0.5),
    op_case(aten.hardshrink.default, EDGES, 0.1),
    op_case(aten.softshrink.default, EDGES, 0.1),
    op_case(aten.threshold.default, EDGES, 0.1, -7),
    op_case(aten.threshold.default, EDGES, 0, 0),
    op_case(aten.glu.default, f32(2, 4, 3), 1),
    op_case(aten.glu.default, f32(2, 3, 6)),
    op_case(aten.logit.default, f32(2, 3).sigmoid()),
    op_case(aten.logit.default, torch.tensor([0.0, 1e-5, 0.3, 1.0]), 1e-3),
    op_case(aten.sinc.default, EDGES / 8),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_matches_torch(case):
    assert_matches_torch(case, atol=2e-6)


@pytest.mark.parametrize(
    ("case", "kinds"),
    [
        (op_case(aten.relu.default, f32(2)), ["RELU"]),
        (op_case(aten.relu6.default, f32(2)), ["RELU6"]),
        (op_case(aten.hardtanh.default, f32(2)), ["RELU_N1_TO_1"]),
        (op_case(aten.gelu.default, f32(2)), ["GELU"]),
        (op_case(aten.silu.default, f32(2)), ["LOGISTIC", "MUL"]),
        (op_case(aten.hardswish.default, f32(2)), ["HARD_SWISH"]),
        (op_case(aten.elu.default, f32(2)), ["ELU"]),
        (op_case(aten.threshold.default, f32(2), 0, 0), ["RELU"]),
    ],
    ids=str,
)
def test_uses_the_op_that_delegates_take(case, kinds):
    assert [op.kind for op in graph_of(case).ops] == kinds


def test_softplus_of_a_very_negative_number_is_not_zero():
    x = torch.tensor([-18.0, -25.0, -60.0])
    assert_matches_torch(op_case(aten.softplus.default, x), atol=0)


def test_rrelu_in_training_draws_slopes():
    x = torch.full((1000,), -2.0)
    case = op_case(aten.rrelu.default, x, 0.25, 0.5, True)
    (drawn,) = run(lowered_alone(case), x)
    assert -1.0 <= drawn.min() < -0.95
    assert -0.55 < drawn.max() <= -0.5


class Activations(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.prelu = torch.nn.PReLU(4)
        self.prelu.weight.data = torch.tensor([0.1, -0.3, 2.0, 0.7])

    def forward(self, x):
        f = torch.nn.functional
        return self.prelu(x), f.softsign(x), f.tanhshrink(x), f.glu(x, 1), f.logsigmoid(x)


def test_module_through_torch_export():
    assert_matches_torch(
        op_case(Activations().eval().requires_grad_(False), f32(2, 4, 3, 5)), export=True
    )
