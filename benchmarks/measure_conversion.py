"""Converts one model with whichever `litert_torch` this interpreter has; prints one JSON line.

    PYTHON benchmarks/measure_conversion.py MODEL OUTPUT.tflite

Run by against_upstream.py, in a fresh process, with our interpreter and with upstream's.
"""

import ctypes
import gc
import json
import os
import sys
import time
import warnings
from pathlib import Path


def main() -> None:
    """Convert sys.argv[1] to the file sys.argv[2]."""
    name, output = sys.argv[1:]
    warnings.simplefilter("ignore")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import models
    import torch

    import litert_torch

    convert = litert_torch.convert  # both packages import lazily: here, not while measured
    torch.set_num_threads(1)
    module, args = models.build(name)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory freed while building must not hide what convert takes
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM becomes the present size
    before = _status_kb("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    converted = convert(module, args)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    peak = _status_kb("VmHWM")
    converted.export(output)
    measured = {"cpu_s": cpu, "wall_s": wall, "peak_mb": (peak - before) / 1024}
    print(json.dumps(measured | {"torch": torch.__version__}))


def _status_kb(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise LookupError(field)


if __name__ == "__main__":
    main()
