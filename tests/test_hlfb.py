import numpy as np
import pytest
import torch
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers

import litert_torch
from litert_torch import errors
from litert_torch.hlfb import StableHLOCompositeBuilder

X, Y = torch.randn(3, 4), torch.randn(3, 4)


class Model(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def softmax(x, dim):
    builder = StableHLOCompositeBuilder("test.softmax", {"dim": dim, "scale": 1.3, "on": True})
    return builder.mark_outputs(torch.softmax(builder.mark_inputs(x), dim))


def composites(model):
    parsed = schema.ModelT.InitFromPackedBuf(model.model_content())
    code = schema.BuiltinOperator.STABLEHLO_COMPOSITE
    return [
        [
            op.builtinOptions2
            for op in graph.operators
            if parsed.operatorCodes[op.opcodeIndex].builtinCode == code
        ]
        for graph in parsed.subgraphs
    ]


def converted(function, *args, **options):
    return litert_torch.convert(Model(function).eval(), args, verify=True, **options)


@pytest.mark.parametrize("strict", [False, True])
def test_what_is_marked_is_one_op_with_its_attributes(strict):
    model = converted(lambda x: softmax(x + 1, 0) * 2, X, strict_export=strict)
    ((found,), inner) = composites(model)
    assert found.name == b"test.softmax"
    assert found.decompositionSubgraphIndex == 1
    assert inner == []
    attributes = flexbuffers.Loads(bytes(found.compositeAttributes))
    assert attributes == {"dim": 0, "on": True, "scale": float(np.float32(1.3))}


def test_each_call_is_an_op_of_its_own():
    outer, *_ = composites(converted(lambda x: softmax(softmax(x, 0), 1), X))
    dims = [flexbuffers.Loads(bytes(c.compositeAttributes))["dim"] for c in outer]
    assert dims == [0, 1]


def test_composites_nest_and_have_several_inputs_and_outputs():
    def outer(x, y):
        builder = StableHLOCompositeBuilder("test.outer")
        a, b = builder.mark_inputs(x, y)
        c = softmax(a, 1) - b
        c, d = builder.mark_outputs(c, c * a)
        return c + x, d

    first, second, third = composites(converted(outer, X, Y))
    assert [c.name for c in first] == [b"test.outer"]
    assert [c.name for c in second] == [b"test.softmax"]
    assert third == []


def test_the_order_of_inputs_is_that_of_the_marks():
    def subtract(x, y):
        builder = StableHLOCompositeBuilder("test.subtract")
        a, b = builder.mark_inputs(y * 1.5, x * 2)
        return builder.mark_outputs(b - a)

    ((found,), _) = composites(converted(subtract, X, Y))
    assert found.name == b"test.subtract"


def test_marks_without_an_end_are_dropped():
    def begins(x):
        return StableHLOCompositeBuilder("test.open").mark_inputs(x * 2) + 1

    assert composites(converted(begins, X)) == [[]]


def test_reading_what_is_not_marked_is_an_error():
    def reads(x, y):
        builder = StableHLOCompositeBuilder("test.leak")
        return builder.mark_outputs(builder.mark_inputs(x) + y)

    with pytest.raises(errors.UnsupportedCaseError, match=r"test\.leak reads a tensor"):
        converted(reads, X, Y)


@pytest.mark.parametrize("value", [None, [1, 2.0], {"a": 1}, torch.ones(1)])
def test_attributes_of_other_types_are_refused(value):
    with pytest.raises(errors.InvalidInputError, match="composite attribute 'key' must be"):
        StableHLOCompositeBuilder("test.bad", {"key": value})


def test_only_tensors_can_be_marked():
    with pytest.raises(ValueError, match="only tensors can be marked, not int"):
        StableHLOCompositeBuilder("test.bad").mark_inputs(3)
