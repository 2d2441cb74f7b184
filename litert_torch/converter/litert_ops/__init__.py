"""LiteRT operators: one function each, which appends the op and gives its result type.

Operands come first, then the fields of the op's options under short names. Names are the schema's.
"""

from litert_torch.converter.ir import const as const
from litert_torch.converter.litert_ops.control import *
from litert_torch.converter.litert_ops.elementwise import *
from litert_torch.converter.litert_ops.indexing import *
from litert_torch.converter.litert_ops.movement import *
from litert_torch.converter.litert_ops.neural import *
from litert_torch.converter.litert_ops.quantization import *
from litert_torch.converter.litert_ops.random import *
from litert_torch.converter.litert_ops.reduction import *
