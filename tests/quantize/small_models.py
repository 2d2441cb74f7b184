"""Models of one op, or a few, and how their files are run."""

import functools

import numpy as np
import torch
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from torch import nn

from litert_torch.converter import Signature, convert_signatures, flatbuffer


class TimesMatrix(nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(shape) * 0.1)

    def forward(self, x):
        return x @ self.weight


class Tied(nn.Module):
    """An embedding whose table is the weight of the last layer, too."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(50, 32)
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.table.weight

    def forward(self, i):
        return self.head(self.table(i))


class Blocks(nn.Module):
    """Convolutions with a residual sum, a concatenation and a softmax."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1, stride=2)
        self.each = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.point = nn.Conv2d(16, 16, 1)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        y = torch.relu(self.stem(x))
        z = self.point(nn.functional.relu6(self.each(y))) + y
        pooled = nn.functional.max_pool2d(torch.cat([z, y], 1), 3, 2)
        return self.head(torch.sigmoid(pooled.mean((2, 3)))).softmax(-1)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def samples(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def seeded(make, *args, **kwargs):
    torch.manual_seed(0)
    return make(*args, **kwargs).eval()


MODELS = {
    "linear": lambda: (seeded(nn.Linear, 128, 40), samples(3, 128)),
    "linear3d": lambda: (seeded(nn.Linear, 64, 40, bias=False), samples(2, 5, 64)),
    "conv": lambda: (seeded(nn.Conv2d, 32, 40, 3, padding=1), samples(1, 32, 9, 8)),
    "depthwise": lambda: (
        seeded(nn.Conv2d, 16, 32, 3, padding=1, groups=16),
        samples(1, 16, 9, 8),
    ),
    "grouped": lambda: (seeded(nn.Conv2d, 64, 48, 3, groups=2), samples(1, 64, 9, 8)),
    "transposed": lambda: (
        seeded(nn.ConvTranspose2d, 16, 24, 3, stride=2),
        samples(1, 16, 9, 8),
    ),
    "batched": lambda: (seeded(TimesMatrix, 3, 32, 24), samples(3, 5, 32)),
    "tied": lambda: (seeded(Tied), torch.arange(14).reshape(2, 7) * 3),
}


@functools.cache
def model(name):
    return MODELS[name]()


def converted(module, x, recipe):
    """The graph and the file."""
    signature = Signature.checked("serving_default", module, (x,), None, None)
    (graph,) = convert_signatures([signature], transforms=[recipe])
    return graph, flatbuffer.to_bytes([graph])


def run(content, x, *, delegates=True):
    """The first output, and the names of the ops that ran outside of XNNPACK."""
    resolver = (
        OpResolverType.AUTO if delegates else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.asarray(x))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def eager(module, x):
    with torch.no_grad():
        return module(x).numpy()
