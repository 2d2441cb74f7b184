"""The code in docs/tpu.md that loads an artifact, where torch cannot be imported."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("jax", reason="TPU artifacts need jax: pip install 'litert-torch[tpu]'")

from litert_torch import tpu
from tests.tpu.models import perceptron

PAGE = Path(__file__).parents[2] / "docs" / "tpu.md"
BLOCK = """
import sys
for name in ("torch", "litert_torch"):
    sys.modules[name] = None
"""


def test_jax_alone_loads_an_artifact(tmp_path):
    code = re.search(r"## Without this package\n.*?```python\n(.*?)```", PAGE.read_text(), re.S)[1]
    x = torch.randn(1, 6)
    tpu.export(perceptron(), (x,)).export(tmp_path / "model.tpu")
    np.save(tmp_path / "x.npy", x.numpy())
    assert 'np.load("x.npy")' in code
    code += '\nnp.save("y.npy", outputs["output_0"])\n'
    subprocess.run(
        [sys.executable, "-W", "ignore", "-I", "-c", BLOCK + code], check=True, cwd=tmp_path
    )
    want = perceptron()(x).detach().numpy()
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), want, rtol=1e-5, atol=1e-6)
