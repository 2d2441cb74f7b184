import logging
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from ai_edge_litert import schema_py_generated as schema

import litert_torch
from litert_torch import errors
from litert_torch.model import LiteRTModel


class Affine(torch.nn.Module):
    def __init__(self, inputs=5, outputs=3):
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.inner(x)


class Returns(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


X = torch.arange(10, dtype=torch.float32).reshape(2, 5) - 4


def convert(function, *args, **kwargs):
    return litert_torch.convert(Returns(function).eval(), args, **kwargs)


def op_names(model):
    parsed = schema.ModelT.InitFromPackedBuf(model.model_content())
    names = {v: k for k, v in vars(schema.BuiltinOperator).items()}
    return [names[code.builtinCode] for code in parsed.operatorCodes]


def test_the_model_computes_what_the_module_does():
    module = Affine().eval()
    model = litert_torch.convert(module, (X,))
    np.testing.assert_allclose(model(X.numpy()), module(X).detach(), rtol=1e-5)


def test_keyword_inputs_keep_their_names_and_paths():
    model = convert(
        lambda x, mask, cache: x * mask + cache[0] - cache[1],
        X,
        sample_kwargs={"mask": X + 1, "cache": [X + 2, X * 3]},
    )
    feed = {"args_0": X, "mask": X + 1, "cache_0": X + 2, "cache_1": X * 3}
    got = model(**{k: v.numpy() for k, v in feed.items()})
    np.testing.assert_allclose(got, X * (X + 1) + X + 2 - X * 3)


def test_a_dict_of_outputs_keeps_its_names():
    outputs = convert(lambda x: {"low": x - 1, "high": [x + 1, x + 2]}, X)(X.numpy())
    assert sorted(outputs) == ["high_0", "high_1", "low"]
    np.testing.assert_allclose(outputs["high_1"], X + 2)


def test_two_signatures_share_their_weights():
    module = Affine(300, 200).eval()
    one = litert_torch.convert(module, (torch.ones(2, 300),))
    two = litert_torch.signature("other", module, (torch.ones(7, 300),)).convert(
        module, (torch.ones(2, 300),)
    )
    assert len(two.model_content()) < 1.1 * len(one.model_content())
    assert two(np.ones((7, 300), np.float32), signature_name="other").shape == (7, 200)


def test_add_signature_is_signature():
    converter = litert_torch.signature("a", Affine().eval(), (X,))
    model = converter.add_signature("b", Affine().eval(), (X[:1],)).convert()
    assert model(X[:1].numpy(), signature_name="b").shape == (1, 3)


def test_one_sample_for_two_inputs_makes_two_inputs():
    model = convert(lambda x, pair: x - pair[0] * pair[1], X, [X, X])
    np.testing.assert_array_equal(model(X, X + 1, X * 3), X - (X + 1) * X * 3)


def test_a_parameter_as_a_sample_makes_an_input():
    module = Affine().eval()
    sample = next(module.parameters())
    function = Returns(lambda x: x * sample)
    function.module = module
    model = litert_torch.convert(function.eval(), (sample,))
    other = np.ones(sample.shape, np.float32)
    np.testing.assert_allclose(model(other), sample.detach().numpy())


def test_paths_that_read_alike_stay_apart():
    function = Returns(lambda x, x_0: {"a": {"b": x[0]}, "a_b": x[1] * x_0}).eval()
    model = litert_torch.convert(function, (), {"x": [X, X], "x_0": X})
    inputs = model.signatures["serving_default"].inputs
    assert [t.name for t in inputs] == ["x_0", "x_1", "x_0_1"]
    got = model(x_0=X, x_1=X + 1, x_0_1=X * 2)
    np.testing.assert_array_equal(got["a_b"], X)
    np.testing.assert_array_equal(got["a_b_1"], (X + 1) * X * 2)


def test_a_batch_size_may_stay_open():
    module = Affine().eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    model = litert_torch.convert(module, (X,), dynamic_shapes=({0: batch},))
    more = torch.randn(7, 5)
    np.testing.assert_allclose(model(more.numpy()), module(more).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("strict", [True, False, "auto"])
def test_every_mode_of_export_gives_the_same(strict):
    module = Affine().eval()
    got = litert_torch.convert(module, (X,), strict_export=strict, lightweight_conversion=True)
    np.testing.assert_allclose(got(X.numpy()), module(X).detach(), rtol=1e-5)


def test_auto_falls_back_to_strict_export(monkeypatch):
    real, seen = torch.export.export, []

    def only_strict(*args, strict, **kwargs):
        seen.append(strict)
        if not strict:
            raise RuntimeError("refused")
        return real(*args, strict=strict, **kwargs)

    monkeypatch.setattr(torch.export, "export", only_strict)
    litert_torch.convert(Affine().eval(), (X,), strict_export="auto")
    assert seen == [False, True]


def test_a_module_in_training_mode_is_converted_for_inference_and_left_alone(caplog):
    module = torch.nn.Sequential(Affine(), torch.nn.Dropout(0.9))
    with caplog.at_level(logging.WARNING):
        got = litert_torch.convert(module, (X,))(X.numpy())
    assert module.training
    assert module[1].training
    assert "module is in training mode" in caplog.text
    np.testing.assert_allclose(got, module.eval()(X).detach(), rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_modules_keep_the_dtype_of_their_inputs_and_outputs(dtype):
    module = Affine().eval().to(dtype)
    model = litert_torch.convert(module, (X.to(dtype),), verify=True)
    tensors = schema.ModelT.InitFromPackedBuf(model.model_content()).subgraphs[0]
    kind = getattr(schema.TensorType, str(dtype).removeprefix("torch.").upper())
    assert tensors.tensors[tensors.inputs[0]].type == kind
    assert tensors.tensors[tensors.outputs[0]].type == kind


WRONG = [
    (lambda m: litert_torch.convert(m), "sample_args or sample_kwargs must be provided"),
    (lambda m: litert_torch.convert(m, X), r"must be a tuple of tensors.*write \(x,\)"),
    (lambda m: litert_torch.convert(m, (X,), [1]), "sample_kwargs must be a dict"),
    (lambda m: litert_torch.convert(torch.relu, (X,)), "must be a torch.nn.Module"),
    (lambda m: litert_torch.convert(), "nothing to convert"),
    (lambda m: litert_torch.signature("", m, (X,)), "non-empty string"),
    (lambda m: litert_torch.convert(m, (X,), quant_config=3), r"must have a method apply\(graph\)"),
    (lambda m: litert_torch.convert(m, (X,), verify=-1), "must be a bool or a relative error"),
    (
        lambda m: litert_torch.signature("a", m, (X,)).signature("a", m, (X,)),
        "'a' is already added",
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[m for _, m in WRONG])
def test_wrong_arguments_are_value_errors_that_say_so(call, message):
    with pytest.raises(errors.InvalidInputError, match=message) as caught:
        call(Affine().eval())
    assert isinstance(caught.value, ValueError)


def test_samples_that_do_not_fit_name_the_line():
    with pytest.raises(errors.ExportError, match=r"cannot trace Affine \(at .*test_interface.py"):
        litert_torch.convert(Affine().eval(), (torch.ones(2, 4),))


def test_control_flow_on_values_says_what_to_do():
    def branches(x):
        return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(errors.ExportError, match=r"(?s)test_interface.py.*Use torch.where"):
        convert(branches, X)


def test_outputs_that_are_no_tensors_are_refused():
    with pytest.raises(errors.ConversionError, match="return tensors only"):
        convert(lambda x: (x + 1, 3), X)


def test_a_path_that_cannot_be_written_leaves_nothing(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    model = litert_torch.convert(Affine().eval(), (X,))
    with pytest.raises(errors.OutputError, match="cannot write") as caught:
        model.export(blocked / "model.tflite")
    assert isinstance(caught.value, OSError)
    assert os.listdir(tmp_path) == ["file"]


def test_load_gives_what_was_exported(tmp_path):
    model = litert_torch.convert(Affine().eval(), (X,))
    model.export(tmp_path / "a" / "model.tflite")
    loaded = litert_torch.load(tmp_path / "a" / "model.tflite")
    assert isinstance(loaded, LiteRTModel)
    np.testing.assert_array_equal(loaded(X.numpy()), model(X.numpy()))
    with pytest.raises(errors.InvalidModelFileError):
        litert_torch.load(tmp_path / "absent.tflite")


def test_the_same_module_gives_the_same_bytes():
    first, second = (litert_torch.convert(Affine().eval(), (X,)) for _ in range(2))
    assert first.model_content() == second.model_content()


def test_ahead_of_time_compilation_gives_a_result_for_each_target():
    from ai_edge_litert.aot.core import aot_types
    from ai_edge_litert.aot.vendors import fallback_backend

    result = litert_torch.experimental_add_compilation_backend(
        fallback_backend.FallbackTarget()
    ).convert(Affine().eval(), (X,))
    assert isinstance(result, aot_types.CompilationResult)
    (backend, _), *others = result.models_with_backend
    assert backend.id() == fallback_backend.FallbackBackend.id()
    assert not others


def test_progress_names_the_stages_in_order():
    seen = []
    litert_torch.convert(Affine().eval(), (X,), progress=seen.append, verify=True)
    stages = [stage.split()[0] for stage in seen]
    assert stages == ["export", "lower", "optimize", "write", "verify"]


def test_progress_is_silent_where_nobody_looks(capfd):
    litert_torch.convert(Affine().eval(), (X,), progress=True)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "export" not in captured.err


def test_progress_shows_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    litert_torch.convert(Affine().eval(), (X,))
    shown = capsys.readouterr().err
    assert "export serving_default" in shown
    assert "write" in shown
    litert_torch.convert(Affine().eval(), (X,), progress=False)
    assert capsys.readouterr().err == ""


def test_config_says_that_this_is_the_public_build():
    assert litert_torch.config.in_oss is True


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'konvert'"):
        litert_torch.konvert  # noqa: B018


def test_every_public_name_is_there():
    code = "import litert_torch; [getattr(litert_torch, n) for n in litert_torch.__all__]"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
