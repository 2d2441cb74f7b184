"""The documentation's complete examples run as they stand there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def complete_examples():
    """Python blocks that import what they use, from the README and docs/."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
        for number, block in enumerate(blocks):
            if block.startswith("import "):
                yield pytest.param(block, id=f"{path.stem}-{number}")


@pytest.mark.parametrize("source", complete_examples())
def test_example_runs(source, tmp_path, monkeypatch):
    if "tpu" in source:
        pytest.importorskip("jax", reason="TPU artifacts need jax: the extra [tpu]")
    monkeypatch.chdir(tmp_path)
    exec(compile(source, "example", "exec"), {"__name__": "example"})
