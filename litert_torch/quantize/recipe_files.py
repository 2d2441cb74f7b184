"""Recipes as JSON: our own form, and ai-edge-quantizer's, which is only read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from litert_torch.converter.dtypes import DType
from litert_torch.errors import InvalidInputError
from litert_torch.quantize.interfaces import Interface
from litert_torch.quantize.rules import Compute, Rule
from litert_torch.quantize.schemes import Weights

_FORMAT = "litert_torch recipe"
_VERSION = 1
_SETTINGS = ("observer", "least_sqnr", "smoothing", "interface")

_ALGORITHMS = {
    "min_max_uniform_quantize": "min_max",
    "OCTAV": "octav",
    "MSE": "mse",
    "GPTQ": "gptq",
    "float_casting": None,
}
"""ai-edge-quantizer's names for what we have, too."""

_OPERATIONS = {"*": None, "CONV_2D_TRANSPOSE": "TRANSPOSE_CONV"}


def to_json(rules: Sequence[Rule], settings: Mapping[str, Any]) -> str:
    """The rules and what else a recipe has as JSON text; defaults of rules are left out."""
    defaults = asdict(Rule())
    listed = [{k: v for k, v in asdict(r).items() if v != defaults[k]} for r in rules]
    plain = {k: str(v) if v in (math.inf, -math.inf) else v for k, v in settings.items()}
    record = {"format": _FORMAT, "version": _VERSION, **plain, "rules": listed}
    return json.dumps(record, indent=2, allow_nan=False)


def from_json(text: str) -> tuple[tuple[Rule, ...], dict[str, Any]]:
    """Rules and what else a recipe has, from our JSON or from a recipe of ai-edge-quantizer.

    Raises:
        InvalidInputError: the text is neither, or asks for what we do not have.
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"the recipe is not JSON: {error}") from error
    if isinstance(data, list):
        return tuple(_foreign_rule(entry, i) for i, entry in enumerate(data)), {}
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        raise InvalidInputError(f'the recipe has no "format": "{_FORMAT}", and is no list of rules')
    if data.get("version") != _VERSION:
        raise InvalidInputError(f"the recipe has version {data.get('version')}, not {_VERSION}")
    rules = tuple(_rule(entry, i) for i, entry in enumerate(data.get("rules", [])))
    settings = {k: data[k] for k in _SETTINGS if k in data}
    if settings.get("interface") is not None:
        settings["interface"] = _interface(settings["interface"])
    if "least_sqnr" in settings:
        settings["least_sqnr"] = float(settings["least_sqnr"])
    return rules, settings


def _interface(entry: Any) -> Interface:
    if not isinstance(entry, dict) or set(entry) - {f.name for f in fields(Interface)}:
        raise InvalidInputError("the recipe's interface has unknown fields")
    lists: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}
    return Interface(**lists)


def _rule(entry: Mapping[str, Any], i: int) -> Rule:
    known = {f.name for f in fields(Rule)}
    unknown = set(entry) - known
    if unknown:
        raise InvalidInputError(f"rule {i} has unknown fields: {', '.join(sorted(unknown))}")
    values = dict(entry)
    if "weights" in values:
        w = dict(values["weights"])
        values["weights"] = Weights(**{**w, "dtype": _dtype(w.get("dtype"), i)})
    if values.get("activations") is not None:
        values["activations"] = _dtype(values["activations"], i)
    return Rule(**values)


def _dtype(name: Any, i: int) -> DType:
    try:
        return DType(name)
    except ValueError as error:
        raise InvalidInputError(f"rule {i}: there is no type {name!r}") from error


def _foreign_rule(entry: Any, i: int) -> Rule:
    """One {regex, operation, algorithm_key, op_config}: searched for in the result's name."""
    if not isinstance(entry, dict) or not {"regex", "operation", "algorithm_key"} <= set(entry):
        raise InvalidInputError(f"rule {i} has no regex, operation and algorithm_key")
    regex, key = str(entry["regex"]), entry["algorithm_key"]
    operation = str(entry["operation"])
    name = None if regex in (".*", "") else f"regex:{regex}"
    op = _OPERATIONS.get(operation, operation)
    if key == "no_quantize":
        return Rule(name=name, op=op, weights=Weights(DType.FLOAT32), optional=True)
    if key not in _ALGORITHMS:
        raise InvalidInputError(
            f"rule {i}: algorithm {key!r} is not known; known: {', '.join(_ALGORITHMS)}"
        )
    config = entry.get("op_config") or {}
    weights = _foreign_weights(config.get("weight_tensor_config") or {}, i)
    compute, activations = _foreign_compute(config, i)
    return Rule(
        name=name,
        op=op,
        min_size=int(config.get("min_weight_elements") or 0),
        weights=weights,
        compute=compute,
        activations=activations,
        algorithm=_ALGORITHMS[key],
        optional=True,
    )


def _foreign_weights(config: Mapping[str, Any], i: int) -> Weights:
    kind = "float" if config.get("dtype", "INT") == "FLOAT" else "int"
    dtype = _dtype(f"{kind}{config.get('num_bits', 8)}", i)
    granularity = str(config.get("granularity", "TENSORWISE"))
    block = granularity.removeprefix("BLOCKWISE_") if granularity.startswith("BLOCK") else None
    per_channel = granularity == "CHANNELWISE" or block is not None or kind == "float"
    return Weights(dtype, "channel" if per_channel else "tensor", int(block) if block else None)


def _foreign_compute(config: Mapping[str, Any], i: int) -> tuple[Compute, DType | None]:
    activation = config.get("activation_tensor_config")
    if activation:
        return "static", _dtype(f"int{activation.get('num_bits', 8)}", i)
    if config.get("compute_precision") == "INTEGER" and not config.get("explicit_dequantize"):
        return "dynamic", None
    return "weight_only", None
