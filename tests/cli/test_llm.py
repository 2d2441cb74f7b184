"""litert-convert llm."""

from litert_torch.llm import bundle
from tests.cli.command_line import fails, reports, succeeds
from tests.llm import tiny_models
from tests.llm.running import Runner


def saved(folder):
    tiny_models.model("llama").save_pretrained(folder)
    tiny_models.tokenizer().save_pretrained(folder)
    return folder


def test_a_folder_becomes_a_file(tmp_path):
    source, output = saved(tmp_path / "source"), tmp_path / "model.litertlm"
    lengths = ["--cache-length", "32", "--prefill-length", "4", "--prefill-length", "8"]
    recipe = ["--quantize", "weight_only_wi8_afp32"]
    template = tmp_path / "template.jinja"
    template.write_text("{{ messages | length }}")
    chat = ["--chat-template", template]
    record = reports("llm", source, "-o", output, *lengths, *recipe, *chat)
    assert record["bytes"] == output.stat().st_size
    signatures = Runner(output).model.signatures
    assert sorted(signatures) == ["decode", "prefill_4", "prefill_8"]
    assert signatures["decode"].inputs[2].shape == (1, 2, 32, 8)
    assert b"{{ messages | length }}" in bundle.contents(output, bundle.Kind.METADATA)
    said = succeeds("llm", source, "-o", output, "--prefill-length", "8").stdout
    assert said.startswith(f"{output}: ")
    assert Runner(output).model.signatures["decode"].inputs[2].shape == (1, 2, 256, 8)
    assert output.stat().st_size > record["bytes"]


def test_mistakes(tmp_path):
    output = tmp_path / "a.litertlm"
    assert "no folder" in fails(1, "llm", tmp_path / "none", "-o", output)
    assert "is a folder" in fails(2, "llm", tmp_path, "-o", tmp_path)
    assert "no recipe 'int8'" in fails(2, "llm", tmp_path, "-o", output, "--quantize", "int8")
    assert not output.exists()
