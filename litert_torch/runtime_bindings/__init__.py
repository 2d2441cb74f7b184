"""Run files on devices and on this machine. Never imports torch."""

from litert_torch.runtime_bindings.litert import DEFAULT_SIGNATURE_NAME, LiteRTModel, Model

__all__ = ["DEFAULT_SIGNATURE_NAME", "LiteRTModel", "Model"]
