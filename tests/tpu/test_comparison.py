import pytest
import torch

pytest.importorskip("jax", reason="TPU artifacts need jax: pip install 'litert-torch[tpu]'")

import litert_torch
from litert_torch import tpu
from litert_torch.errors import InvalidInputError
from tests.tpu.models import perceptron


def test_a_file_and_an_artifact_stand_in_one_table():
    module, x = perceptron(), torch.randn(3, 6)
    models = {".tflite": litert_torch.convert(module, (x,)), "tpu": tpu.export(module, (x,))}
    found = litert_torch.compare_all(models, module, (x,))
    assert found.within()
    assert not found.within(-1.0)
    lines = str(found).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [
        ["output_0", ".tflite", "float32"],
        ["output_0", "tpu", "float32"],
    ]


def test_no_models_are_refused():
    with pytest.raises(InvalidInputError, match="no models"):
        litert_torch.compare_all({}, perceptron(), (torch.randn(3, 6),))
