import ast

import pytest
import torch

import litert_torch
from litert_torch import errors
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.lowerings import lowers
from litert_torch.debug import find_culprits, search_model

aten = torch.ops.aten

library = torch.library.Library("litert_torch_test_debug", "DEF")
library.define("unknown(Tensor x) -> Tensor")
library.impl("unknown", lambda x: x + 1.0, "CompositeExplicitAutograd")
library.impl("unknown", torch.empty_like, "Meta")
unknown = torch.ops.litert_torch_test_debug.unknown.default

X = torch.arange(6, dtype=torch.float32).reshape(2, 3)


class Calls(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.linear = torch.nn.Linear(3, 3)

    def forward(self, *args):
        return self.function(self, *args)


def targets(result):
    return [n.target for n in result.graph.nodes if n.op == "call_function"]


def test_each_op_that_does_not_convert_is_found_alone():
    def forward(self, x):
        a = unknown(self.linear(x) + 1)
        return torch.tanh(a), unknown(a - 2)

    culprits = list(find_culprits(Calls(forward).eval(), (X,)))
    assert [targets(c) for c in culprits] == [[unknown], [unknown]]
    assert "test_debug.py" in culprits[0].stack_traces[0]


def test_nothing_is_found_where_all_converts():
    assert list(find_culprits(Calls(lambda self, x: self.linear(x)).eval(), (X,))) == []


def test_the_code_of_a_culprit_fails_as_the_model_does():
    culprit = next(find_culprits(Calls(lambda self, x: unknown(x) + 1).eval(), (X,)))
    code = culprit.print_code(print_output=False)
    ast.parse(culprit.print_readable(print_output=False))
    with pytest.raises(errors.UnsupportedOpError, match=r"litert_torch_test_debug\.unknown"):
        exec(code, {})


def test_print_code_prints(capsys):
    culprit = next(find_culprits(Calls(lambda self, x: unknown(x)).eval(), (X,)))
    culprit.print_code()
    assert "litert_torch.convert(CulpritGraphModule().eval(), _args)" in capsys.readouterr().out


def test_weights_of_a_part_are_in_its_code():
    def has_linear(module, inputs):
        return any(n.target is aten.linear.default for n in module.graph.nodes)

    model = Calls(lambda self, x: torch.tanh(self.linear(x + 1)))
    (found,) = search_model(has_linear, model, (X,))
    assert targets(found) == [aten.linear.default]
    assert len(found.inputs) == 1
    torch.testing.assert_close(found.graph_module(X)[0], model.linear(X))


def test_ops_that_fail_only_together_are_found_together():
    def forward(self, x):
        a = torch.tanh(x)
        b = torch.sigmoid(x * 2)
        return a + torch.exp(b)

    def both(module, inputs):
        found = {n.target for n in module.graph.nodes}
        return {aten.tanh.default, aten.exp.default} <= found

    (found,) = search_model(both, Calls(forward).eval(), (X,))
    assert sorted(map(str, targets(found))) == ["aten.exp.default", "aten.tanh.default"]


def test_ops_with_several_results_stay_whole():
    def forward(self, x):
        a, b = torch.split(x, [1, 2], dim=1)
        return unknown(a) + b.sum()

    (culprit,) = find_culprits(Calls(forward).eval(), (X,))
    assert targets(culprit) == [unknown]


def test_in_place_ops_do_not_spoil_the_recorded_inputs():
    def forward(self, x):
        y = x + 1
        y.mul_(3)
        return unknown(y)

    (culprit,) = find_culprits(Calls(forward).eval(), (X,))
    torch.testing.assert_close(culprit.inputs[0], (X + 1) * 3)


def test_max_granularity_stops_early():
    model = Calls(lambda self, x: torch.tanh(torch.exp(x)) * 2)
    found = search_model(
        lambda m, i: aten.tanh.default in [n.target for n in m.graph.nodes],
        model,
        (X,),
        max_granularity=2,
    )
    assert targets(next(found)) == [aten.exp.default, aten.tanh.default]


def test_a_wrong_lowering_is_named_by_verify():
    def forward(self, x):
        y = self.linear(x)
        y = torch.tanh(y)
        return y * 2

    lowers.all()
    wrong = lowers.only_within(aten.tanh.default, lambda g, x: tfl.logistic(g, x))
    with (
        wrong,
        pytest.raises(
            errors.VerificationError,
            match=r"first op that differs: aten.tanh.default at .*test_debug.py",
        ),
    ):
        litert_torch.convert(Calls(forward).eval(), (X,), verify=True)
