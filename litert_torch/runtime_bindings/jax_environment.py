"""What the environment of a process must say before jax is imported into it."""

import glob
import os

_WITHOUT_TPU = {
    "JAX_PLATFORMS": "cpu",  # arrays live on the CPU; the TPU compiler is used by name
    "TPU_SKIP_MDS_QUERY": "1",  # there is no metadata server of a cloud to ask
    "TPU_ACCELERATOR_TYPE": "v5litepod-1",  # any; else libtpu complains on stderr
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # several processes may compile at once
}


def has_tpu() -> bool:
    """Whether this machine has TPU devices."""
    return bool(glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*"))


def prepare() -> None:
    """Keep jax from looking for a TPU where there is none; what the user has set stays."""
    if not has_tpu():
        for name, value in _WITHOUT_TPU.items():
            os.environ.setdefault(name, value)
