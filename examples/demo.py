"""Converts two trained networks, runs the files in LiteRT and shows them beside eager PyTorch.

    make demo

An image classifier (EfficientNet-Lite0) looks at a photo of a cat, and a sentence embedder
(all-MiniLM-L6-v2) orders sentences by how close they are to a question. The files stay in
build/demo/.
"""

import os
import resource
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # all weights come with installed packages
warnings.simplefilter("ignore")

import image_classifier  # noqa: E402
import numpy as np  # noqa: E402
import sentence_embedder  # noqa: E402
import torch  # noqa: E402

import litert_torch  # noqa: E402

OUTPUT = Path("build") / "demo"
QUESTION = "How do I make my old phone's battery last longer?"
SENTENCES = (
    "Lower the screen brightness and close background apps to save power.",
    "The orchestra rehearsed the symphony until midnight.",
    "Replacing a worn-out smartphone battery is cheaper than a new device.",
    "Simmer the tomatoes with garlic and basil for twenty minutes.",
    "Turning off location services reduces energy use on mobile devices.",
)
BOUND = 1e-3  # largest difference over largest value


def main() -> int:
    """Run both; 1 if LiteRT and PyTorch disagree."""
    torch.set_num_threads(1)
    agree = [classify_photo(), order_sentences()]
    print("LiteRT and PyTorch agree." if all(agree) else "LiteRT and PyTorch DISAGREE.")
    return int(not all(agree))


def classify_photo() -> bool:
    """The five best labels for a photo; whether both give them, and close logits."""
    print("EfficientNet-Lite0 on scikit-image's photo of Chelsea the cat")
    module, image = image_classifier.load(), image_classifier.photo()
    model = convert("efficientnet_lite0", module, (image,))
    with torch.no_grad():
        eager = module(image).numpy()
    lite = model(image.numpy())
    ours, theirs = image_classifier.top_labels(lite), image_classifier.top_labels(eager)
    print(f"  {'LiteRT':34s}eager PyTorch")
    for (a, p), (b, q) in zip(ours, theirs, strict=True):
        print(f"  {p:6.2%}  {a:26s}{q:6.2%}  {b}")
    close = is_close("logits", lite, eager)
    print_latency(lambda: model(image.numpy()), lambda: module(image))
    return close and [a for a, _ in ours] == [b for b, _ in theirs]


def order_sentences() -> bool:
    """Sentences by likeness to a question; whether both order them alike, with close vectors."""
    print(f"all-MiniLM-L6-v2: which sentence is closest to {QUESTION!r}?")
    module = sentence_embedder.load()
    texts = [sentence_embedder.tokens(s) for s in (QUESTION, *SENTENCES)]
    model = convert("minilm_l6_v2", module, texts[0])
    with torch.no_grad():
        eager = np.concatenate([module(*t).numpy() for t in texts])
    lite = np.concatenate([model(*(x.numpy() for x in t)) for t in texts])
    ours, theirs = lite[1:] @ lite[0], eager[1:] @ eager[0]
    print("  LiteRT  PyTorch")
    for i in ours.argsort()[::-1]:
        print(f"  {ours[i]:6.3f}  {theirs[i]:6.3f}  {SENTENCES[i]}")
    close = is_close("embeddings", lite, eager)
    print_latency(lambda: model(*(x.numpy() for x in texts[0])), lambda: module(*texts[0]))
    return close and (ours.argsort() == theirs.argsort()).all()


def convert(name: str, module: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> Any:
    """The model, opened from the .tflite file written for it; prints what it took."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / f"{name}.tflite"
    start = time.perf_counter()
    litert_torch.convert(module, args).export(path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if _is_mac() else 1 << 10)
    print(f"  converted in {seconds:.1f} s to {path} ({path.stat().st_size / 1e6:.1f} MB)")
    print(f"  peak memory of the process so far: {peak:.0f} MB, PyTorch included")
    return litert_torch.load(path)


def _is_mac() -> bool:
    return sys.platform == "darwin"  # ru_maxrss is in bytes there, in kilobytes elsewhere


def is_close(what: str, lite: np.ndarray, eager: np.ndarray) -> bool:
    """Print the largest error; whether it is within BOUND of the largest value."""
    error, scale = np.abs(lite - eager).max(), np.abs(eager).max()
    print(f"  largest error of the {what}: {error:.1e} (largest value {scale:.2f})")
    return bool(error <= BOUND * scale)


def print_latency(lite: Any, eager: Any, runs: int = 20) -> None:
    """Print the median wall time of both, one thread each."""
    taken: tuple[list[float], list[float]] = ([], [])
    with torch.no_grad():
        for _ in range(runs):
            for run, times in zip((lite, eager), taken, strict=True):
                start = time.perf_counter()
                run()
                times.append(1000 * (time.perf_counter() - start))
    print(f"  latency, one thread: LiteRT {statistics.median(taken[0]):.1f} ms,", end=" ")
    print(f"eager PyTorch {statistics.median(taken[1]):.1f} ms\n")


if __name__ == "__main__":
    sys.exit(main())
