"""A model named by text: `package.module:name`, `file.py:name`, `torchvision:NAME`, `timm:NAME`."""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from litert_torch.converter.frontends import samples
from litert_torch.converter.signature import DEFAULT_SIGNATURE_NAME, Signature
from litert_torch.errors import (
    ConversionError,
    InvalidInputError,
    LiteRTTorchError,
    MissingDependencyError,
)

FORMS = "FILE.pt2, package.module:name, file.py:name, torchvision:NAME or timm:NAME"


def signature(
    source: str,
    inputs: Sequence[str] = (),
    *,
    weights: str | os.PathLike[str] | None = None,
    pretrained: bool = False,
) -> Signature:
    """The entry point that `source` names.

    Args:
        source: `package.module:name` or `file.py:name`, where name is a module, a class of modules
            or a function that returns a module, (module, args) or (module, args, kwargs);
            `torchvision:NAME` or `timm:NAME`, with random weights.
        inputs: Sample inputs as `samples.parse_sample` reads them, in place of the source's own.
        weights: A state dict (.pt, .pth or .safetensors) to load into the module.
        pretrained: Have torchvision or timm download their weights.

    Raises:
        InvalidInputError: the source is unknown, or gives no sample inputs and `inputs` is empty.
        ConversionError: its code fails.
        MissingDependencyError: torchvision or timm is not installed.
    """
    before, colon, name = source.rpartition(":")
    if not colon or not before or not name:
        raise InvalidInputError(f"{source!r} is neither a file nor one of {FORMS}")
    if before in _ZOOS:
        module, args, kwargs = _from_zoo(before, name, pretrained)
    elif pretrained:
        raise InvalidInputError("pretrained weights are for torchvision:NAME and timm:NAME")
    else:
        module, args, kwargs = _unpacked(_built(_found(before, name), source), source)
    if inputs:
        args, kwargs = samples.split([samples.parse_sample(text) for text in inputs])
    if args is None and kwargs is None:
        raise InvalidInputError(f"{source} gives no sample inputs; pass them, as 1x3x224x224")
    if weights is not None:
        _load_weights(module, weights)
    return Signature.checked(DEFAULT_SIGNATURE_NAME, module, args, kwargs)


def _torchvision(name: str, pretrained: bool) -> tuple[Any, Any]:
    import torchvision

    if name not in torchvision.models.list_models():
        raise InvalidInputError(f"torchvision has no model {name!r}")
    model = torchvision.models.get_model(name, weights="DEFAULT" if pretrained else None)
    size = 299 if name.startswith("inception") else 224
    sample = samples.made_up((1, 3, size, size), torch.float32)
    is_detector = isinstance(model, torchvision.models.detection.generalized_rcnn.GeneralizedRCNN)
    return model, ([sample[0]],) if is_detector else (sample,)


def _timm(name: str, pretrained: bool) -> tuple[Any, Any]:
    import timm

    if name.split(".")[0] not in timm.list_models():
        raise InvalidInputError(f"timm has no model {name!r}")
    model = timm.create_model(name, pretrained=pretrained)
    size = model.default_cfg.get("input_size") or (3, 224, 224)
    return model, (samples.made_up((1, *size), torch.float32),)


_ZOOS = {"torchvision": _torchvision, "timm": _timm}


def _from_zoo(zoo: str, name: str, pretrained: bool) -> tuple[torch.nn.Module, Any, Any]:
    try:
        module, args = _ZOOS[zoo](name, pretrained)
    except ImportError as error:
        raise MissingDependencyError(
            f"{zoo}:{name} needs {zoo}: pip install {zoo} ({error})"
        ) from error
    except LiteRTTorchError:
        raise
    except Exception as error:  # downloads fail in many ways
        raise ConversionError(
            f"{zoo} cannot make {name}: {type(error).__name__}: {error}"
        ) from error
    return module.eval(), args, None


def _found(place: str, name: str) -> Any:
    """The object `name` of a module or Python file."""
    owner = _imported(place)
    try:
        for part in name.split("."):
            owner = getattr(owner, part)
    except AttributeError:
        raise InvalidInputError(f"{place} has no {name!r}") from None
    return owner


def _imported(place: str) -> Any:
    is_file = place.endswith(".py")
    with _working_folder_importable():
        try:
            return _module_of_file(place) if is_file else importlib.import_module(place)
        except InvalidInputError:
            raise
        except ModuleNotFoundError as error:
            if error.name and (place == error.name or place.startswith(f"{error.name}.")):
                raise InvalidInputError(f"there is no module {error.name!r}") from error
            raise ConversionError(f"importing {place} failed: {error}") from error
        except Exception as error:
            raise ConversionError(
                f"importing {place} failed: {type(error).__name__}: {error}"
            ) from error


def _module_of_file(path: str) -> Any:
    if not os.path.isfile(path):
        raise InvalidInputError(f"no file {path}")
    name = f"source_{os.path.basename(path).removesuffix('.py')}"  # shadows no other module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _working_folder_importable() -> Iterator[None]:
    """As `python -m` does it, and a console script does not."""
    here = os.getcwd()
    sys.path.insert(0, here)
    try:
        yield
    finally:
        if here in sys.path:
            sys.path.remove(here)


def _built(found: Any, source: str) -> Any:
    if isinstance(found, torch.nn.Module) or not callable(found):
        return found
    try:
        made = found()
        return made.eval() if isinstance(found, type) else made
    except Exception as error:
        raise ConversionError(
            f"calling {source} failed: {type(error).__name__}: {error}"
        ) from error


def _unpacked(made: Any, source: str) -> tuple[torch.nn.Module, Any, Any]:
    """(module, args, kwargs) of a module, (module, args) or (module, args, kwargs)."""
    parts = made if isinstance(made, tuple) else (made,)
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], torch.nn.Module):
        raise InvalidInputError(
            f"{source} must be or return a torch.nn.Module, (module, sample_args) or "
            f"(module, sample_args, sample_kwargs), not {type(made).__name__}"
        )
    module, args, kwargs = (*parts, None, None)[:3]
    if isinstance(args, torch.Tensor):
        args = (args,)
    return module, tuple(args) if isinstance(args, list) else args, kwargs


def _load_weights(module: torch.nn.Module, path: str | os.PathLike[str]) -> None:
    if not os.path.isfile(path):
        raise InvalidInputError(f"no file {path}")
    try:
        if str(path).endswith(".safetensors"):
            from safetensors.torch import load_file

            state: dict[str, Any] = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
        module.load_state_dict(state.get("state_dict", state))
    except ImportError as error:
        raise MissingDependencyError(
            f"{path} needs safetensors: pip install safetensors"
        ) from error
    except Exception as error:  # torch raises what the archive, the pickle or the module raises
        text = str(error) or repr(error)
        raise ConversionError(f"{path} is no state dict of this module: {text}") from error
