"""What of this machine LiteRT can run models on."""

from __future__ import annotations

import ctypes.util
import importlib.metadata
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from litert_torch.errors import InvalidModelFileError, LiteRTTorchError
from litert_torch.runtime_bindings import child

_PROBE_SECONDS = 60.0

NPU_COMPILERS = {
    "qualcomm": "ai-edge-litert-sdk-qualcomm",
    "mediatek": "ai-edge-litert-sdk-mediatek",
    "google tensor": "ai-edge-litert-sdk-google-tensor",
    "intel": "ai-edge-litert-sdk-intel",
}
"""Packages that compile ahead of time for a vendor's NPUs."""


@dataclass(frozen=True)
class Device:
    """An accelerator, or a compiler for one.

    Attributes:
        name: What it is.
        available: Whether it works here.
        detail: What was found, or what is missing.
        remedy: How to get it; "" where nothing is missing.
    """

    name: str
    available: bool
    detail: str
    remedy: str = ""


def devices() -> Iterator[Device]:
    """Accelerators that run models here, then compilers for other devices."""
    yield _probed("cpu", f"{os.cpu_count()} cores, XNNPACK", "pip install -U ai-edge-litert")
    yield _probed("gpu", _vulkan(), _GPU_REMEDY)
    yield _probed("npu", "", "on Intel: pip install openvino, and its libs on LD_LIBRARY_PATH")
    for vendor, package in NPU_COMPILERS.items():
        try:
            version = importlib.metadata.version(package)
            yield Device(f"{vendor} compiler", True, f"{package} {version}")
        except importlib.metadata.PackageNotFoundError:
            yield Device(f"{vendor} compiler", False, "not installed", f"pip install {package}")


_GPU_REMEDY = (
    "install the Vulkan loader (libvulkan1) and a driver for the GPU; without a GPU, "
    "Mesa's lavapipe 25 or later"
)


def _vulkan() -> str:
    return "WebGPU on Vulkan" if ctypes.util.find_library("vulkan") else "no Vulkan loader"


def _probed(accelerator: str, detail: str, remedy: str) -> Device:
    """Run one operator on the accelerator, in a process of its own: drivers crash."""
    try:
        child.call(probe, accelerator=accelerator, timeout=_PROBE_SECONDS)
    except InvalidModelFileError:  # LiteRT's own message is a place in its source
        reason = f"LiteRT finds no {accelerator} that it can use"
        return Device(accelerator, False, f"{reason}; {detail}" if detail else reason, remedy)
    except (LiteRTTorchError, RuntimeError, ImportError) as error:
        reason = str(error).splitlines()[0]
        return Device(accelerator, False, f"{detail}: {reason}" if detail else reason, remedy)
    return Device(accelerator, True, detail)


def probe(accelerator: str) -> None:
    """Run a model of one ADD on `accelerator` alone; raise unless it gives the right result."""
    from litert_torch.runtime_bindings.compiled import CompiledModel

    with tempfile.TemporaryDirectory(prefix="litert_torch_") as folder:
        path = Path(folder, "add.tflite")
        path.write_bytes(_one_add())
        model = CompiledModel(path, accelerators=[accelerator])
        x = np.array([[1.5, -2.0, 3.0, 0.25]], np.float32)
        (y,) = model(x, x).values()
    if not np.allclose(y, 2 * x, atol=1e-2):
        raise RuntimeError(f"it computes {x.tolist()} + {x.tolist()} = {y.tolist()}")


def _one_add() -> bytes:
    """A file whose only operator adds its two float32[1,4] inputs."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    graph = schema.SubGraphT()
    graph.tensors = [schema.TensorT() for _ in range(3)]
    for tensor, name in zip(graph.tensors, ("a", "b", "sum"), strict=True):
        tensor.name, tensor.shape = name, [1, 4]
    operator = schema.OperatorT()
    operator.inputs, operator.outputs = [0, 1], [2]
    operator.builtinOptionsType = schema.BuiltinOptions.AddOptions
    operator.builtinOptions = schema.AddOptionsT()
    graph.operators, graph.inputs, graph.outputs = [operator], [0, 1], [2]
    model = schema.ModelT()
    model.version, model.subgraphs, model.buffers = 3, [graph], [schema.BufferT()]
    model.operatorCodes = [schema.OperatorCodeT()]
    model.operatorCodes[0].version = 1
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
