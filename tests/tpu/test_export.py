import json
import re

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("jax", reason="TPU artifacts need jax: pip install 'litert-torch[tpu]'")

from litert_torch import tpu
from litert_torch.errors import (
    InvalidInputError,
    InvalidModelFileError,
    OutputError,
    UnsupportedCaseError,
    UnsupportedOpError,
)
from tests.tpu.models import Counter, perceptron


def eager(module, *args):
    with torch.no_grad():
        return module(*args).numpy()


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("tpu") / "model.tpu"
    batch = torch.export.Dim("batch", max=64)
    tpu.export(perceptron(), (torch.randn(2, 6),), dynamic_shapes=({0: batch},)).export(path)
    return path


def copy_of(artifact, tmp_path):
    path = tmp_path / "copy.tpu"
    tpu.load(artifact).export(path)
    return path


def edit_manifest(path, edit):
    manifest = json.loads((path / "signature.json").read_text())
    edit(manifest)
    (path / "signature.json").write_text(json.dumps(manifest))


def test_any_batch_agrees_with_pytorch(artifact):
    model = tpu.load(artifact)
    for batch in (1, 2, 7):
        x = torch.randn(batch, 6)
        np.testing.assert_allclose(model(x), eager(perceptron(), x), rtol=1e-5, atol=1e-6)


def test_a_program_runs_before_it_is_written():
    x = torch.randn(2, 6)
    program = tpu.export(perceptron(), (x,))
    np.testing.assert_allclose(program(x), eager(perceptron(), x), rtol=1e-5, atol=1e-6)


def test_signatures_name_their_tensors(artifact):
    spec = tpu.load(artifact).signatures["serving_default"]
    assert [str(t) for t in spec.inputs] == ["args_0 float32[?,6]"]
    assert [str(t) for t in spec.outputs] == ["output_0 float32[?,4]"]


def test_weights_are_arguments_and_not_in_the_module(artifact):
    module = (artifact / "serving_default.jax_export").read_bytes()
    assert perceptron()[0].weight.detach().numpy().tobytes() not in module
    manifest = json.loads((artifact / "signature.json").read_text())
    names = [w["name"] for w in manifest["signatures"]["serving_default"]["weights"]]
    assert names == ["0.bias", "0.weight", "2.bias", "2.weight"]


def test_the_same_model_gives_the_same_bytes(artifact, tmp_path):
    batch = torch.export.Dim("batch", max=64)
    path = tmp_path / "again.tpu"
    tpu.export(perceptron(), (torch.randn(2, 6),), dynamic_shapes=({0: batch},)).export(path)
    names = sorted(p.name for p in path.iterdir())
    assert names == sorted(p.name for p in artifact.iterdir())
    for name in names:
        assert (path / name).read_bytes() == (artifact / name).read_bytes(), name


def test_modules_hold_no_paths_of_this_machine(artifact):
    module = (artifact / "serving_default.jax_export").read_bytes()
    assert not re.findall(rb"[\w/]+\.py\b", module)


def test_state_lasts_from_call_to_call_until_reset(tmp_path):
    x = torch.randn(2, 3)
    tpu.export(Counter(), (x,)).export(tmp_path / "m.tpu")
    model = tpu.load(tmp_path / "m.tpu")
    once = torch.sigmoid(Counter().linear(x)).detach().numpy()
    np.testing.assert_allclose(model(x), once, rtol=1e-5)
    np.testing.assert_allclose(model(x), 2 * once, rtol=1e-5)
    model.reset()
    np.testing.assert_allclose(model(x), once, rtol=1e-5)


def test_signatures_share_weights(tmp_path):
    body, tail = nn.Linear(4, 6), nn.Linear(6, 3)
    whole = nn.Sequential(body, tail).eval()
    x = torch.randn(2, 4)
    program = tpu.signature("body", body.eval(), (x,)).signature("whole", whole, (x,)).export()
    program.export(tmp_path / "m.tpu")
    model = tpu.load(tmp_path / "m.tpu")
    np.testing.assert_allclose(model(x, signature_name="body"), eager(body, x), rtol=1e-5)
    np.testing.assert_allclose(model(x, signature_name="whole"), eager(whole, x), rtol=1e-5)
    manifest = json.loads((tmp_path / "m.tpu" / "signature.json").read_text())
    (shard,) = manifest["weights"].values()
    assert len(shard["tensors"]) == 4


def test_integers_stay_64_bits_wide():
    class Add(nn.Module):
        def forward(self, x):
            return x + (1 << 40)

    x = torch.tensor([3, -5])
    assert tpu.export(Add(), (x,))(x).tolist() == [(1 << 40) + 3, (1 << 40) - 5]


def test_dtype_makes_weights_and_inputs_bfloat16():
    module = perceptron()
    x = torch.randn(2, 6)
    program = tpu.export(module, (x,), dtype="bfloat16")
    spec = program.signatures["serving_default"]
    assert (spec.inputs[0].dtype, spec.outputs[0].dtype) == ("bfloat16", "bfloat16")
    np.testing.assert_allclose(
        program(x.bfloat16()).astype(np.float32), eager(module, x), rtol=0.05, atol=0.05
    )
    assert module[0].weight.dtype == torch.float32


def test_shards_have_at_most_the_size_asked_for(tmp_path):
    x = torch.randn(2, 6)
    tpu.export(perceptron(), (x,)).export(tmp_path / "m.tpu", shard_bytes=200)
    files = sorted(p.name for p in (tmp_path / "m.tpu").glob("*.safetensors"))
    assert files[0] == f"weights-00001-of-{len(files):05}.safetensors"
    assert len(files) > 1
    np.testing.assert_allclose(
        tpu.load(tmp_path / "m.tpu")(x), eager(perceptron(), x), rtol=1e-5, atol=1e-6
    )


def test_a_model_on_the_meta_device_has_no_weights_to_run(tmp_path):
    program = tpu.export(perceptron("meta"), (torch.empty(2, 6, device="meta"),))
    program.export(tmp_path / "m.tpu")
    assert not list((tmp_path / "m.tpu").glob("*.safetensors"))
    with pytest.raises(InvalidModelFileError, match=r"shapes only.*0\.bias and 3 more"):
        tpu.load(tmp_path / "m.tpu")(torch.randn(2, 6))


def test_all_missing_ops_are_listed_with_their_lines(monkeypatch):
    lowers = tpu.lowers.all()
    op = torch.ops.aten.relu.default
    saved = lowers.pop(op)
    try:
        monkeypatch.setattr("litert_torch.converter.decompositions._function", lambda op: None)
        with pytest.raises(UnsupportedOpError, match=r"No TPU lowering for 1 op") as caught:
            tpu.export(perceptron(), (torch.randn(2, 6),))
    finally:
        lowers[op] = saved
    assert "aten.relu.default  x1" in str(caught.value)


def test_sizes_that_depend_on_the_data_are_refused_with_the_line():
    class Chosen(nn.Module):
        def forward(self, x):
            return x[x > 0] * 2

    with pytest.raises((UnsupportedCaseError, UnsupportedOpError), match=r"test_export\.py:\d+"):
        tpu.export(Chosen(), (torch.randn(5),))


def test_changed_weights_are_refused(artifact, tmp_path):
    path = copy_of(artifact, tmp_path)
    (file,) = path.glob("*.safetensors")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(InvalidModelFileError, match="was changed after it was made"):
        tpu.load(path)(torch.randn(1, 6))
    tpu.load(path, verify=False)(torch.randn(1, 6))


def test_changed_modules_are_refused(artifact, tmp_path):
    path = copy_of(artifact, tmp_path)
    file = path / "serving_default.jax_export"
    file.write_bytes(file.read_bytes()[:-4] + b"abcd")
    with pytest.raises(InvalidModelFileError, match=r"serving_default\.jax_export was changed"):
        tpu.load(path)(torch.randn(1, 6))


def test_a_module_of_another_jax_names_both(artifact, tmp_path):
    path = copy_of(artifact, tmp_path)

    def edit(manifest):
        manifest["made_with"]["jax"] = "9.8.7"
        manifest["signatures"]["serving_default"]["calling_convention"] = 99

    edit_manifest(path, edit)
    with pytest.raises(InvalidModelFileError, match=r"jax 9\.8\.7; jax \d+\.\d+.* reads"):
        tpu.load(path)(torch.randn(1, 6))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda m: m.update(format=2), "has format 2; this version"),
        (lambda m: m.pop("signatures"), "is damaged"),
        (lambda m: m["weights"].clear(), r"does not hold 0\.bias"),
    ],
)
def test_damaged_manifests_are_refused(artifact, tmp_path, edit, message):
    path = copy_of(artifact, tmp_path)
    edit_manifest(path, edit)
    with pytest.raises(InvalidModelFileError, match=message):
        tpu.load(path)(torch.randn(1, 6))


def test_folders_that_are_no_artifacts_are_refused(tmp_path):
    with pytest.raises(InvalidModelFileError, match=r"no signature\.json"):
        tpu.load(tmp_path)


def test_another_folder_is_not_overwritten(tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    program = tpu.export(perceptron(), (torch.randn(2, 6),))
    with pytest.raises(OutputError, match="exists and is not a folder with a signature"):
        program.export(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["precious.txt"]


def test_an_artifact_is_replaced_whole(artifact, tmp_path):
    path = copy_of(artifact, tmp_path)
    (path / "left_over").write_text("")
    tpu.export(perceptron(), (torch.randn(2, 6),)).export(path)
    assert not (path / "left_over").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["copy.tpu"]


def test_wrong_inputs_are_explained(artifact):
    model = tpu.load(artifact)
    with pytest.raises(InvalidInputError, match=r"args_0 float32\[\?,6\] got an array of shape"):
        model(torch.randn(2, 5))
    with pytest.raises(InvalidInputError, match="no signature 'train'"):
        model(torch.randn(2, 6), signature_name="train")
