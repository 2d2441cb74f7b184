"""Builds the wheel and installs it alone, without torch, in a new environment that runs a model.

What runs on a device or a server must not need PyTorch: `litert_torch.runtime_bindings` has to
import and work with numpy, flatbuffers, ml_dtypes and ai-edge-litert only.
"""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
RUNTIME = ("ai-edge-litert", "numpy", "flatbuffers", "ml_dtypes")

MAKE_MODEL = """
import sys, torch, litert_torch
model = torch.nn.Linear(3, 2, bias=False).eval()
model.weight.data = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.0, -1.0]])
litert_torch.convert(model, (torch.zeros(1, 3),)).export(sys.argv[1])
"""

RUN_MODEL = """
import importlib.util, sys
import numpy as np
from litert_torch.runtime_bindings import LiteRTModel
assert importlib.util.find_spec("torch") is None, "torch is installed: the check proves nothing"
result = LiteRTModel.load(sys.argv[1])(np.array([[2.0, -1.0, 0.25]], np.float32))
np.testing.assert_allclose(result, [[4.75, 0.75]], rtol=1e-6)
print("wheel check: ran a model without torch:", result.tolist())
"""


def main() -> None:
    """Build, install, run; raises where a step fails."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        wheel = build_wheel(scratch)
        check_contents(wheel)
        model = scratch / "model.tflite"
        run(sys.executable, "-c", MAKE_MODEL, str(model))
        environment = scratch / "environment"
        venv.create(environment, with_pip=True)
        python = str(environment / "bin" / "python")
        run(python, "-m", "pip", "install", "-q", "--no-deps", str(wheel))
        run(python, "-m", "pip", "install", "-q", *RUNTIME)
        run(python, "-c", RUN_MODEL, str(model), cwd=scratch)


def build_wheel(folder: Path) -> Path:
    """The project's wheel, in `folder`."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


def check_contents(wheel: Path) -> None:
    """The wheel claims one name in site-packages, and is typed and licensed."""
    names = zipfile.ZipFile(wheel).namelist()
    top = {n.split("/")[0] for n in names if ".dist-info/" not in n}
    assert top == {"litert_torch"}, f"the wheel installs {top}"
    assert "litert_torch/py.typed" in names
    assert any(n.endswith("/LICENSE") for n in names), "the wheel lacks the licence"


def run(*command: str, cwd: Path | None = None) -> None:
    """Run a command; its output is shown only where it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:200]} failed:\n{done.stdout}{done.stderr}")
    if "wheel check" in done.stdout:
        print(done.stdout.strip())


if __name__ == "__main__":
    main()
