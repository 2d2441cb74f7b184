"""Run and examine files, on devices and on this machine. Never imports torch.

`litert.LiteRTModel` runs a file in the interpreter, `compiled.CompiledModel` on accelerators;
`model_file.ModelFile` reads one, `inspection.inspect` and `benchmark.benchmark` report on one.
"""

from litert_torch.runtime_bindings.litert import DEFAULT_SIGNATURE_NAME, LiteRTModel, Model

__all__ = ["DEFAULT_SIGNATURE_NAME", "LiteRTModel", "Model"]
