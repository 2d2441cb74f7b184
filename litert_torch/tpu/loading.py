"""load(): an artifact, ready to run on one device or on a mesh of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from litert_torch.runtime_bindings.pjrt import PjrtModel, require_jax
from litert_torch.runtime_bindings.tpu_artifact import Artifact, SignatureSpec
from litert_torch.tpu import sharding, sharding_rules


def load(
    path: str | os.PathLike[str],
    *,
    platform: str | None = None,
    mesh: Mapping[str, int] | None = None,
    shardings: sharding_rules.Rules = None,
    verify: bool = True,
) -> PjrtModel:
    """Open the artifact at `path`; it must stay in place as long as the model is used.

    Args:
        path: The folder.
        platform: "tpu", "cpu", or None for a TPU where there is one.
        mesh: Names and sizes of the axes that devices are arranged along; None is one device.
        shardings: How weights, state and inputs are split over the mesh, as
            `litert_torch.tpu.compile` takes them.
        verify: Whether digests of the weights are compared when they are read.

    Raises:
        InvalidModelFileError: there is none, or it is damaged.
        InvalidInputError: there are fewer devices than the mesh has.
        MissingDependencyError: jax is not installed.
    """
    require_jax()
    placement = None if mesh is None else Placement(mesh, shardings, platform)
    return PjrtModel(Artifact(path), platform=platform, verify=verify, placement=placement)


class Placement:
    """The arrays of signatures on a mesh of this machine's devices."""

    def __init__(
        self, mesh: Mapping[str, int], rules: sharding_rules.Rules, platform: str | None = None
    ) -> None:
        import jax
        import numpy as np

        devices = jax.devices(platform)
        self._mesh = sharding.mesh_of(mesh, len(devices))
        self._rules = rules
        self._grid = jax.sharding.Mesh(np.array(devices).reshape(tuple(mesh.values())), tuple(mesh))

    def of(
        self, spec: SignatureSpec, inputs: Mapping[str, Sequence[int]]
    ) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """A jax sharding for each weight, state and input, by name."""
        from jax.sharding import NamedSharding, PartitionSpec

        weights = {a.name: tuple(map(int, a.shape)) for a in spec.weights}
        state = {a.name: tuple(map(int, a.shape)) for a in spec.state}
        found = sharding_rules.resolve(self._rules, weights, state, inputs, self._mesh)

        def named(table: Any, specs: Mapping[str, sharding.Spec]) -> dict[str, Any]:
            places = {n: PartitionSpec(*specs.get(n, ())) for n in table}
            return {n: NamedSharding(self._grid, p) for n, p in places.items()}

        return (
            named(weights, found.weights),
            named(state, found.state),
            named(inputs, found.inputs),
        )
