"""Our quantizer against ai-edge-quantizer: the same float file, scheme and calibration data.

    python benchmarks/quantize_against_upstream.py --upstream ENV/bin/python \
        [--crops 100] [--sentences 60] [--write docs/quantization.md]

Each side reads the same float .tflite file and writes a quantized one, in a process of its own that
tells its time (without imports; that of the CPU, too, as other programs may run) and its peak
memory. Both results run in LiteRT on inputs that neither has seen; where one takes or gives
integers (upstream's static files do), they are converted by the scales in the file. The models are
those of benchmarks/quantization.py.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

SCHEMES = ("dynamic_wi8_afp32", "weight_only_wi8_afp32", "static_wi8_ai8", "static_wi8_ai16")
CALIBRATION = 32
SIDES = ("ours", "upstream")


def calibration(task):
    """Batches by input name, from the file that the parent wrote."""
    if not task["scheme"].startswith("static"):
        return None
    data = np.load(task["calibration"])
    names = task["inputs"]
    count = len(data[names[0]])
    return [{n: data[n][i] for n in names} for i in range(count)]


def quantize_ours(task):
    """With litert_torch.quantize.quantize_file."""
    from litert_torch.quantize import Recipe, quantize_file

    def run():
        recipe = Recipe.named(task["scheme"], calibration=calibration(task))
        quantize_file(task["float"], task["output"], recipe)

    return run


def quantize_upstream(task):
    """With ai_edge_quantizer, as its documentation says."""
    from ai_edge_quantizer import quantizer, recipe

    def run():
        made = quantizer.Quantizer(task["float"], getattr(recipe, task["scheme"])())
        data = calibration(task)
        seen = made.calibrate({task["signature"]: data}) if data is not None else None
        made.quantize(seen).export_model(task["output"], overwrite=True)

    return run


def work(task):
    """In the child: quantize once, and print seconds and MB."""
    side = quantize_ours if task["side"] == "ours" else quantize_upstream
    run = side(task)
    start, start_cpu = time.perf_counter(), time.process_time()
    run()
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak_megabytes()}))


def peak_megabytes():
    """Of this program's own memory; getrusage tells that of the parent, too."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1e3


def child(python, task):
    """What `work` printed; None where the side fails, with the reason on stderr."""
    command = [python, "-W", "ignore", __file__, "--task", json.dumps(task)]
    root = str(Path(__file__).parent.parent)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if task["side"] == "ours":
        environment["PYTHONPATH"] = root
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        print(f"{task['side']} {task['scheme']}: {done.stderr[-400:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def models(arguments):
    """Name, module, inputs that judge, inputs that calibrate, and how agreement is measured."""
    import quantization as real

    unseen = [(x,) for x in real.crops(arguments.crops, 1)]
    seen = [(x,) for x in real.crops(CALIBRATION, 2)]
    yield "efficientnet-lite0", real.classifier(), unseen, seen, real.same_class
    module, tokenizer = real.encoder()
    tokens = real.sentences(tokenizer, arguments.sentences + CALIBRATION)
    yield (
        "all-MiniLM-L6-v2",
        module,
        tokens[CALIBRATION:],
        tokens[:CALIBRATION],
        real.same_order,
    )


def outputs(path, samples):
    """What the file gives for each sample as float, and milliseconds a sample."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=path, num_threads=2)
    runner = interpreter.get_signature_runner()
    takes, (gives,) = runner.get_input_details(), runner.get_output_details().values()
    feeds = [
        {n: as_stored(x, takes[n]) for n, x in zip(sorted(takes), sample, strict=True)}
        for sample in samples
    ]
    runner(**feeds[0])
    start = time.perf_counter()
    found = np.concatenate([next(iter(runner(**feed).values())) for feed in feeds])
    ms = (time.perf_counter() - start) / len(samples) * 1e3
    scale, zero_point = gives["quantization"]
    return (found.astype(np.float32) - zero_point) * scale if scale else found, ms


def as_stored(x, detail):
    """A float input as the integers that a file takes."""
    scale, zero_point = detail["quantization"]
    if not scale or x.dtype.kind != "f":
        return x.astype(detail["dtype"])
    limits = np.iinfo(detail["dtype"])
    return np.clip(np.rint(x / scale) + zero_point, limits.min, limits.max).astype(detail["dtype"])


def float_file(module, sample, path):
    """The float file; gives the names of its inputs."""
    import torch

    import litert_torch

    model = litert_torch.convert(module, tuple(map(torch.from_numpy, sample)))
    model.export(path)
    (spec,) = model.signatures.values()
    return spec.name, [t.name for t in spec.inputs]


def rows(name, module, unseen, seen, agreement, upstream):
    """For each scheme and side: seconds, CPU seconds, peak MB, MB, SQNR, agreement."""
    from litert_torch.quantize.numerics import sqnr

    with tempfile.TemporaryDirectory() as folder:
        source = str(Path(folder, "float.tflite"))
        signature, inputs = float_file(module, unseen[0], source)
        want, _ = outputs(source, unseen)
        data = str(Path(folder, "calibration.npz"))
        np.savez(data, **{n: np.stack([b[i] for b in seen]) for i, n in enumerate(inputs)})
        for scheme in SCHEMES:
            for side in SIDES:
                output = str(Path(folder, f"{side}.tflite"))
                task = {
                    "side": side,
                    "scheme": scheme,
                    "float": source,
                    "output": output,
                    "calibration": data,
                    "inputs": inputs,
                    "signature": signature,
                }
                found = child(upstream if side == "upstream" else sys.executable, task)
                if found is None:
                    yield [name, scheme, side, "fails", *[""] * 6]
                    continue
                got, ms = outputs(output, unseen)
                yield [
                    name,
                    scheme,
                    side,
                    f"{found['seconds']:.2f}",
                    f"{found['cpu']:.2f}",
                    f"{found['peak']:.0f}",
                    f"{os.path.getsize(output) / 1e6:.2f}",
                    f"{ms:.1f}",
                    f"{sqnr(want, got):.1f}",
                    agreement(want, got),
                ]
                print(name, scheme, side, found, f"{sqnr(want, got):.1f}", flush=True)


BEGIN, END = "<!-- against upstream: begin -->\n", "<!-- against upstream: end -->\n"


def main():
    """Print the table, and put it between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--upstream", help="a Python that has ai-edge-quantizer")
    parser.add_argument("--crops", type=int, default=100)
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument("--write", type=Path, help="a Markdown page with the marks")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        work(json.loads(arguments.task))
        return
    warnings.filterwarnings("ignore")
    sys.path.insert(0, str(Path(__file__).parent))
    import quantization as real

    found = [
        row
        for name, module, unseen, seen, agreement in models(arguments)
        for row in rows(name, module, unseen, seen, agreement, arguments.upstream)
    ]
    head = [
        "model",
        "scheme",
        "by",
        "s",
        "CPU s",
        "peak MB",
        "file MB",
        "run ms",
        "SQNR dB",
        "agreement",
    ]
    text = real.table(head, found) + "\n"
    print(text)
    if arguments.write:
        page = arguments.write.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        arguments.write.write_text(f"{before}{BEGIN}{text}{END}{after}")


if __name__ == "__main__":
    main()
