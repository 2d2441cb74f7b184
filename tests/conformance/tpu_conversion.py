"""One op call through the TPU route: lowered by jax, compiled and run by XLA's CPU client."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from litert_torch.converter import functionalize
from litert_torch.tpu import dtypes, random_keys
from litert_torch.tpu.interpret import Interpreter
from litert_torch.tpu.tracing import exact_types
from tests.conformance import tracing

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_optimization_level", "O0")  # compiling is most of the time


def converted(module, call):
    """The compiled program of a traced call, with random keys' data as its first argument."""
    if tracing.writes(module):
        return exported(call)
    return _compiled(module, call)


def exported(call):
    """The compiled program of a call by torch.export."""
    program = functionalize.functional(tracing.program_of(call))
    return _compiled(program.graph_module, call)


def _compiled(module, call):
    Interpreter().require_lowerings(module)

    def function(key, *inputs):
        with random_keys.drawn_from(random_keys.Keys(key)):
            return Interpreter().run(module, inputs)

    with exact_types():
        shapes = [jax.ShapeDtypeStruct(t.shape, dtypes.to_jax(t.dtype)) for t in call.tensors]
        key = jax.ShapeDtypeStruct((2,), jnp.uint32)
        return jax.jit(function).lower(key, *shapes).compile()


def runner(compiled, tensors):
    """A function that runs the program on the tensors, each time with other random numbers."""
    keys = itertools.count()
    with exact_types():
        inputs = [jnp.asarray(dtypes.array_of(t)) for t in tensors]

    def run():
        with exact_types():
            results = compiled(jnp.asarray([0, next(keys)], jnp.uint32), *inputs)
        return [_as_compared(np.asarray(r)) for r in results]

    return run


def _as_compared(array):
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
