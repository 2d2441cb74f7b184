"""Files read back: a graph that was read is written as the file that it was read from."""

import contextlib
import random

import flatbuffers
import numpy as np
import pytest
import torch
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from torch import nn

import litert_torch
from litert_torch.converter import flatbuffer
from litert_torch.converter import litert_ops as tfl
from litert_torch.converter.dtypes import DType
from litert_torch.converter.flatbuffer import options
from litert_torch.converter.ir import const
from litert_torch.errors import InvalidModelFileError, UnsupportedCaseError
from litert_torch.hlfb import StableHLOCompositeBuilder
from litert_torch.quantize.recipe import Recipe
from litert_torch.quantize.schemes import int2
from litert_torch.runtime_bindings import LiteRTModel
from litert_torch.runtime_bindings.model_file import ModelFile
from tests.converter.graphs import build, weights
from tests.converter.graphs import random as numbers
from tests.quantize.small_models import Blocks, Mlp, samples, seeded
from tests.runtime_bindings import small_files as small
from tests.runtime_bindings.test_model_file import FILES

pytestmark = pytest.mark.filterwarnings("ignore")


def read(content):
    return flatbuffer.graphs_of(ModelFile(bytes(content)))


def again(content):
    return flatbuffer.to_bytes(read(content), flatbuffer.metadata_of(ModelFile(bytes(content))))


class Gelus(nn.Module):
    """Two calls of a composite, and a loop."""

    def forward(self, x):
        for _ in range(2):
            builder = StableHLOCompositeBuilder("test.gelu", {"scale": 1.5, "name": "abc"})
            x = builder.mark_outputs(nn.functional.gelu(builder.mark_inputs(x)))
        return x


def converted(module, x, recipe=None, **kwargs):
    return litert_torch.convert(module, (x,), quant_config=recipe, **kwargs).model_content()


IMAGES = [samples(1, 3, 16, 18, seed=i) for i in range(2)]
batch = {0: torch.export.Dim("batch", min=2)}

CONTENTS = {
    **FILES,
    "float": lambda: converted(seeded(Blocks), IMAGES[0]),
    "static": lambda: converted(seeded(Blocks), IMAGES[0], Recipe.static(calibration=IMAGES)),
    "int16": lambda: converted(
        seeded(Blocks), IMAGES[0], Recipe.static("wi8_ai16", calibration=IMAGES)
    ),
    "blocks": lambda: converted(seeded(Mlp), samples(3, 64), Recipe.named("dynamic_wi4b32_afp32")),
    "int2": lambda: converted(seeded(Mlp), samples(3, 64), Recipe().rule(weights=int2())),
    "half": lambda: converted(seeded(Mlp), samples(3, 64), Recipe.named("float16")),
    "composites": lambda: converted(Gelus(), samples(3, 5)),
    "dynamic": lambda: converted(seeded(Mlp), samples(3, 64), dynamic_shapes=(batch,)),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_our_files_come_back_byte_for_byte(kind):
    content = CONTENTS[kind]()
    assert again(content) == content


def test_weights_stay_in_the_file_until_they_are_read(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(CONTENTS["float"]())
    (graph,) = flatbuffer.graphs_of(ModelFile.open(path))
    w = next(op.inputs[1] for op in graph.ops if op.kind == "CONV_2D")
    assert not w.read().flags.owndata
    np.testing.assert_array_equal(np.concatenate(list(w.const.chunks(300))), w.read())


def rewritten(content, change):
    """The file after `change` of its tables, as another producer might write it."""
    model = schema.ModelT.InitFromPackedBuf(bytes(content))
    change(model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def dense(change=lambda model: None):
    """A product of which `change` may alter the tables."""
    g = build(lambda g, x: tfl.relu(g, tfl.fully_connected(g, x, weights(6, 5), None)), (2, 5))
    return rewritten(flatbuffer.to_bytes([g]), change)


def results(content, *xs):
    interpreter = Interpreter(model_content=bytes(content))
    interpreter.allocate_tensors()
    for detail, x in zip(interpreter.get_input_details(), xs, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def test_signatures_keep_their_order_of_names():
    g = build(lambda g, x, y: (tfl.sub(g, x, y), tfl.add(g, x, y)), (2, 3), (2, 3))

    def reverse(model):
        model.signatureDefs[0].inputs.reverse()
        model.signatureDefs[0].outputs.reverse()

    content = rewritten(flatbuffer.to_bytes([g]), reverse)
    made = again(content)
    spec = LiteRTModel(made).signatures["serving_default"]
    assert [t.name for t in spec.inputs] == ["args_1", "args_0"]
    assert [t.name for t in spec.outputs] == ["output_1", "output_0"]
    x, y = numbers(2, 3), numbers(2, 3, seed=1)
    for got, want in zip(results(made, x, y), results(content, x, y), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_file_without_signatures_gets_one():
    content = small.without_signatures(small.content(small.dense(2)))
    (graph,) = read(content)
    assert (graph.name, len(graph.input_names)) == ("serving_default", 1)
    x = numbers(2, 6)
    want, got = LiteRTModel(content)(x), LiteRTModel(again(content))(x)
    (want,) = want.values() if isinstance(want, dict) else (want,)
    (got,) = got.values() if isinstance(got, dict) else (got,)
    np.testing.assert_array_equal(got, want)


def test_two_signatures_of_one_subgraph_stay_two():
    def share(model):
        other = schema.SignatureDefT.InitFromObj(
            schema.Model.GetRootAs(dense(), 0).SignatureDefs(0)
        )
        other.signatureKey = "second"
        model.signatureDefs.append(other)

    made = again(dense(share))
    x = numbers(2, 5)
    model = LiteRTModel(made)
    np.testing.assert_array_equal(model(x), model(x, signature_name="second"))
    assert ModelFile(made).model.BuffersLength() == ModelFile(dense()).model.BuffersLength()


def test_custom_operators_keep_options_and_version():
    def custom(model):
        code = model.operatorCodes[1]
        code.builtinCode, code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM, 32
        code.customCode, code.version = b"My.Op", 3
        model.subgraphs[0].operators[1].customOptions = list(range(7))

    made = schema.ModelT.InitFromPackedBuf(again(dense(custom)))
    code = made.operatorCodes[1]
    assert (code.customCode, code.version) == (b"My.Op", 3)
    assert bytes(made.subgraphs[0].operators[1].customOptions) == bytes(range(7))


def test_metadata_and_variables_stay():
    def change(model):
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.frombuffer(b"1.14.0", np.uint8)
        record = schema.MetadataT()
        record.name, record.buffer = "min_runtime_version", len(model.buffers) - 1
        model.metadata = [record]
        state = schema.TensorT()
        state.name, state.shape, state.isVariable = "state", [2, 3], True
        model.subgraphs[0].tensors.append(state)
        model.subgraphs[0].operators[1].intermediates = [len(model.subgraphs[0].tensors) - 1]

    content = again(dense(change))
    assert bytes(flatbuffer.metadata_of(ModelFile(content))["min_runtime_version"]) == b"1.14.0"
    made = schema.ModelT.InitFromPackedBuf(content).subgraphs[0]
    (number,) = made.operators[1].intermediates
    assert (made.tensors[number].isVariable, made.tensors[number].name) == (True, b"state")


def test_weights_in_another_file(tmp_path):
    data = weights(6, 5).read()

    def outside(model):
        tensor = next(t for t in model.subgraphs[0].tensors if list(t.shape) == [6, 5])
        tensor.buffer, tensor.externalBuffer = 0, 7
        group, place = schema.ExternalBufferGroupT(), schema.ExternalBufferT()
        group.name = "weights.bin"
        place.id, place.group, place.offset, place.length = 7, 0, 16, data.nbytes
        model.externalBufferGroups, model.externalBuffers = [group], [place]

    path = tmp_path / "m.tflite"
    path.write_bytes(dense(outside))
    with pytest.raises(InvalidModelFileError, match=r"weights in weights\.bin, which cannot be"):
        flatbuffer.graphs_of(ModelFile.open(path))
    (tmp_path / "weights.bin").write_bytes(b"\1" * 16 + data.tobytes())
    made = flatbuffer.to_bytes(flatbuffer.graphs_of(ModelFile.open(path)))
    x = numbers(2, 5)
    np.testing.assert_array_equal(results(made, x)[0], results(dense(), x)[0])
    (tmp_path / "weights.bin").write_bytes(b"\1" * 40)
    with pytest.raises(InvalidModelFileError, match=r"has 40 bytes; .* needs 136"):
        flatbuffer.graphs_of(ModelFile.open(path))


def swap(model):
    model.subgraphs[0].operators.reverse()


def twice(model):
    operators = model.subgraphs[0].operators
    operators.append(operators[0])


def of_strings(model):
    model.subgraphs[0].tensors[0].type = schema.TensorType.STRING


def sparse(model):
    model.subgraphs[0].tensors[1].sparsity = schema.SparsityParametersT()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (swap, InvalidModelFileError, "reads a value nobody made"),
        (twice, InvalidModelFileError, r"operator 2 \(FULLY_CONNECTED\) writes what is there"),
        (of_strings, UnsupportedCaseError, "is of type STRING"),
        (sparse, UnsupportedCaseError, "is stored sparsely"),
    ],
)
def test_what_cannot_be_read_is_named(change, error, message):
    with pytest.raises(error, match=message):
        read(dense(change))


@pytest.mark.parametrize("kind", ["dense", "state", "loop"])
def test_damaged_files_are_refused_or_read(kind):
    whole, rng = CONTENTS[kind](), random.Random(kind)
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 127, 255, rng.randrange(256)])
        with contextlib.suppress(InvalidModelFileError, UnsupportedCaseError):
            for graph in read(bytes(data)):
                assert str(graph)


def test_every_options_table_of_the_schema_has_an_operator():
    kinds = [k for k, n in vars(schema.BuiltinOperator).items() if isinstance(n, int)]
    reached = {options.table_name(kind) for kind in kinds}
    tables = {
        k
        for union in (schema.BuiltinOptions, schema.BuiltinOptions2)
        for k, n in vars(union).items()
        if isinstance(n, int) and n
    }
    assert tables <= reached


def test_modules_are_found_in_the_names_of_other_converters():
    names = {
        "layers.0/fully_connected_7": "layers.0",
        "model/add_1": "",
        "pkg.Net/torch.nn.Sequential_a/torch.nn.modules.linear.Linear_q_proj;;x": "a.q_proj",
        "model_1/conv/Relu;model_1/conv/BiasAdd": "model_1.conv",
        "": "",
    }
    for name, module in names.items():
        g = build(lambda g, x: tfl.add(g, x, const([1.0], DType.FLOAT32)), (2,))
        g.ops[0].output.name = name
        assert read(flatbuffer.to_bytes([g]))[0].ops[0].source.module == (module or "")
