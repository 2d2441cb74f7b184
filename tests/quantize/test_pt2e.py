import copy

import numpy as np
import pytest
import torch
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import litert_torch
from litert_torch import errors
from litert_torch.quantize.pt2e_quantizer import (
    PT2EQuantizer,
    get_symmetric_quantization_config,
)
from litert_torch.quantize.quant_config import QuantConfig

quantize_pt2e = pytest.importorskip("torchao.quantization.pt2e.quantize_pt2e")

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.each = torch.nn.Conv2d(8, 8, 3, padding=1, stride=2, groups=8)
        self.pool = torch.nn.MaxPool2d(3, 2, padding=1)
        self.mean = torch.nn.AdaptiveAvgPool2d(1)
        self.last = torch.nn.Linear(8, 5)

    def forward(self, x):
        y = self.each(torch.relu(self.first(x)))
        y = self.mean(self.pool(y + 0.5)).flatten(1)
        return torch.sigmoid(self.last(y))


X = torch.randn(2, 3, 9, 8, generator=torch.Generator().manual_seed(1))


def quantizer_of(**options):
    return PT2EQuantizer().set_global(get_symmetric_quantization_config(**options))


def quantized(module, quantizer, x=X, fold=True):
    prepared = quantize_pt2e.prepare_pt2e(torch.export.export(module, (x,)).module(), quantizer)
    prepared(x)
    return quantize_pt2e.convert_pt2e(copy.deepcopy(prepared), fold_quantize=fold)


def ops(model):
    resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(
        model_content=model.model_content(), experimental_op_resolver_type=resolver
    )
    interpreter.allocate_tensors()
    return [op["op_name"] for op in interpreter._get_ops_details()]


@pytest.mark.parametrize("fold", [False, True])
@pytest.mark.parametrize("is_per_channel", [False, True])
def test_without_a_config_the_file_computes_as_eager_does(is_per_channel, fold):
    module = quantized(Net().eval(), quantizer_of(is_per_channel=is_per_channel), fold=fold)
    model = litert_torch.convert(module, (X,))
    step = 1 / 256
    np.testing.assert_allclose(model(X), module(X).detach(), atol=1.5 * step)


@pytest.mark.parametrize("is_per_channel", [False, True])
def test_static_quantization_runs_on_integers(is_per_channel):
    quantizer = quantizer_of(is_per_channel=is_per_channel)
    module = quantized(Net().eval(), quantizer)
    model = litert_torch.convert(module, (X,), quant_config=QuantConfig(pt2e_quantizer=quantizer))
    found = ops(model)
    assert found.count("QUANTIZE") == 1  # the input
    assert found.count("DEQUANTIZE") == 1  # the output
    np.testing.assert_allclose(model(X), module(X).detach(), atol=2.5 / 256)
    np.testing.assert_allclose(model(X), Net().eval()(X).detach(), atol=0.02)


@pytest.mark.parametrize("is_per_channel", [False, True])
def test_dynamic_quantization_keeps_integer_weights(is_per_channel):
    quantizer = quantizer_of(is_per_channel=is_per_channel, is_dynamic=True)
    module = quantized(Net().eval(), quantizer)
    model = litert_torch.convert(module, (X,), quant_config=QuantConfig(pt2e_quantizer=quantizer))
    found = ops(model)
    assert "QUANTIZE" not in found
    assert found.count("DEQUANTIZE") == 1  # the depthwise filter: no kernel takes it as it is
    np.testing.assert_allclose(model(X), module(X).detach(), atol=0.01)


def test_weights_are_stored_as_integers():
    big = torch.nn.Linear(300, 200).eval()
    x = torch.randn(2, 300)
    whole = len(litert_torch.convert(big, (x,)).model_content())
    module = quantized(big, quantizer_of(is_dynamic=True), x, fold=False)
    assert len(litert_torch.convert(module, (x,)).model_content()) < 0.3 * whole


def test_settings_go_by_name_then_type_then_op_then_all():
    config = get_symmetric_quantization_config(is_dynamic=True)
    x = torch.randn(2, 4)

    def weights_quantized(quantizer):
        module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).eval()
        graph = quantized(module, quantizer, x).graph
        linears = [n for n in graph.nodes if n.target is torch.ops.aten.linear.default]
        return ["dequantize" in str(n.args[1].target) for n in linears]

    assert weights_quantized(PT2EQuantizer()) == [False, False]
    assert weights_quantized(PT2EQuantizer().set_global(config)) == [True, True]
    assert weights_quantized(PT2EQuantizer().set_module_name("1", config)) == [False, True]
    assert weights_quantized(PT2EQuantizer().set_module_type(torch.nn.Linear, config)) == [True] * 2
    by_op = PT2EQuantizer().set_operator_type(torch.ops.aten.linear, config)
    assert weights_quantized(by_op) == [True, True]
    but_first = PT2EQuantizer().set_global(config).set_module_name("0", None)
    assert weights_quantized(but_first) == [False, True]


class Joins(torch.nn.Module):
    def forward(self, x):
        a, b = torch.relu(x * 2.0), x + x
        return torch.cat([a * b, torch.relu(a + b)], dim=1)


def test_sums_products_and_concatenations_run_on_integers():
    x = torch.randn(2, 6)
    quantizer = quantizer_of()
    module = quantized(Joins().eval(), quantizer, x)
    model = litert_torch.convert(module, (x,), quant_config=QuantConfig(pt2e_quantizer=quantizer))
    assert ops(model).count("DEQUANTIZE") == 1
    scale = float(module(x).abs().max()) / 100
    np.testing.assert_allclose(model(x), module(x), atol=2 * scale)


def test_integer_tensors_are_left_alone():
    class Indices(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 3)

        def forward(self, x):
            return self.linear(x), torch.arange(3) + 1

    x = torch.randn(2, 4)
    _, positions = quantized(Indices().eval(), quantizer_of(), x)(x)
    assert positions.tolist() == [1, 2, 3]


def test_training_with_quantization_in_mind_folds_batch_norm():
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.conv, self.norm = torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)

        def forward(self, x):
            return torch.relu(self.norm(self.conv(x)))

    quantizer = quantizer_of(is_per_channel=True, is_qat=True)
    exported = torch.export.export(Block().train(), (X,)).module()
    prepared = quantize_pt2e.prepare_qat_pt2e(exported, quantizer)
    prepared(X)
    from torchao.quantization.pt2e import move_exported_model_to_eval

    move_exported_model_to_eval(prepared)
    module = quantize_pt2e.convert_pt2e(prepared)
    model = litert_torch.convert(module, (X,), quant_config=QuantConfig(pt2e_quantizer=quantizer))
    assert ops(model).count("CONV_2D") == 1
    assert ops(model).count("DEQUANTIZE") == 1
    step = float(module(X).max()) / 255
    np.testing.assert_allclose(model(X), module(X).detach(), atol=2 * step)


def test_what_cannot_be_is_refused():
    with pytest.raises(errors.InvalidInputError, match="dynamic quantization has no training"):
        get_symmetric_quantization_config(is_qat=True, is_dynamic=True)
    with pytest.raises(errors.InvalidInputError, match="must be a PT2EQuantizer, not int"):
        QuantConfig(pt2e_quantizer=3)
