"""Exports a trained network for TPU, runs it on this CPU, and compiles it for TPUs elsewhere.

    make demo-tpu

EfficientNet-Lite0 looks at a photo of a cat, in PyTorch and as the artifact, which is read back
from build/demo/efficientnet_lite0.tpu. Then XLA compiles the artifact ahead of time.
"""

import sys
import time
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

import image_classifier  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

from litert_torch import tpu  # noqa: E402
from litert_torch.tpu.compilation.report import table  # noqa: E402

PATH = Path("build") / "demo" / "efficientnet_lite0.tpu"
TOPOLOGIES = ("v5e:1x1", "tpu7x:2x2x1")
BATCH = 64
BOUND = 1e-3  # largest difference over largest value


def main() -> int:
    """Export, run, compile; 1 if the artifact and PyTorch disagree."""
    torch.set_num_threads(1)
    print("EfficientNet-Lite0 on scikit-image's photo of Chelsea the cat")
    module, image = image_classifier.load(), image_classifier.photo()
    export(module, image)
    agree = run(module, image)
    compile_ahead()
    print(f"The artifact and PyTorch {'agree' if agree else 'DISAGREE'}.")
    return int(not agree)


def export(module: torch.nn.Module, image: torch.Tensor) -> None:
    """Write the artifact, for any batch; print what it took."""
    start = time.perf_counter()
    batch = torch.export.Dim("batch")
    samples = image.repeat(2, 1, 1, 1)
    tpu.export(module, (samples,), dynamic_shapes=({0: batch},)).export(PATH)
    seconds = time.perf_counter() - start
    print(f"  exported in {seconds:.1f} s to {PATH}:")
    for file in sorted(PATH.iterdir()):
        print(f"    {file.stat().st_size / 1e6:8.2f} MB  {file.name}")


def run(module: torch.nn.Module, image: torch.Tensor) -> bool:
    """The five best labels by both; whether they are the same, and the logits close."""
    with torch.no_grad():
        eager = module(image).numpy()
    logits = tpu.load(PATH)(image)
    ours, theirs = image_classifier.top_labels(logits), image_classifier.top_labels(eager)
    print(f"  {'artifact on PJRT CPU':34s}eager PyTorch")
    for (a, p), (b, q) in zip(ours, theirs, strict=True):
        print(f"  {p:6.2%}  {a:26s}{q:6.2%}  {b}")
    error, scale = np.abs(logits - eager).max(), np.abs(eager).max()
    print(f"  largest error of the logits: {error:.1e} (largest value {scale:.2f})\n")
    return bool(error <= BOUND * scale) and [a for a, _ in ours] == [a for a, _ in theirs]


def compile_ahead() -> None:
    """Compile for TPUs that are not here; print what fits where."""
    print(f"Compiled ahead of time for {BATCH} photos a call; numbers are per device")
    found = [tpu.compile(PATH, name, sizes={"dim_0": BATCH}) for name in TOPOLOGIES]
    print("\n".join(table(found)), end="\n\n")


if __name__ == "__main__":
    sys.exit(main())
