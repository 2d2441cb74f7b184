"""Run in a process with 8 CPU devices: an artifact on meshes, as JSON."""

import json
import sys

import numpy as np

from litert_torch import tpu


def main(path, cases):
    found = []
    x = np.load(f"{path}/../x.npy")
    for mesh, rules in cases:
        model = tpu.load(path, mesh=mesh, shardings=rules)
        y = model(x)
        weight = model._arrays["0.q_proj.weight"]
        part = weight.addressable_shards[0].data.shape
        found.append({"part": part, "y": y.tolist()})
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(*json.loads(sys.argv[1]))))
