"""Who may import whom; see docs/architecture.md."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "litert_torch"

ABOVE = ("cli", "debug", "hlfb", "interface", "testing", "verification", "tpu")
ALLOWED = {
    "errors": (),
    "_version": (),
    "files": ("errors",),
    "runtime_bindings": ("errors", "files"),
    "converter": ("errors", "files"),
    "quantize": ("errors", "files", "converter", "runtime_bindings"),
    "model": ("runtime_bindings",),
    "channel_last": ("errors",),
    "config": (),
    "progress": (),
    "hlfb": ("errors", "converter"),
    "llm": ("errors", "files", "progress", "converter", "quantize", "runtime_bindings"),
    "detection": ("converter",),
}
"""For each part, the parts that it may import besides itself; others may import all but the CLI."""


def part_of(module):
    return module.split(".")[1] if module.count(".") else ""


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((a.name, node.lineno) for a in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = node.module == "litert_torch"
            yield from (
                (f"{node.module}.{a.name}" if whole else node.module, node.lineno)
                for a in node.names
            )


def test_imports_point_down():
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for module, line in imports(path):
            if module.split(".")[0] != "litert_torch":
                continue
            used = part_of(module)
            allowed = ALLOWED.get(own)
            if used in ("", own, "_version", "__version__") or own in ("__init__", "cli"):
                continue
            if used == "cli" or (allowed is not None and used not in allowed):
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {module}")
    assert wrong == []


@pytest.mark.parametrize(
    "module",
    ["litert_torch", "litert_torch.runtime_bindings", "litert_torch.model", "litert_torch.cli"],
)
def test_torch_is_not_imported_where_it_is_not_needed(module):
    code = f"import sys, {module}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


def test_every_part_has_a_rule():
    parts = {p.relative_to(PACKAGE).with_suffix("").parts[0] for p in PACKAGE.rglob("*.py")}
    assert parts - {"__init__"} <= {*ALLOWED, *ABOVE}
