"""Measures statements: repeats them until the time is known, tells how far it can be trusted, compares in tables.

The names are those of `torch.utils.benchmark`.

    >>> from tinygrad_ext.utils import benchmark
    >>> timer = benchmark.Timer("x + x", setup="import tinygrad_ext as tg; x = tg.ones(8)", label="add", sub_label="8")
    >>> 0 < timer.timeit(100).median < 1
    True
"""

from tinygrad_ext.errors import refuse_unknown

from .compare import Colorize, Compare
from .fuzzer import FuzzedParameter, FuzzedSparseTensor, FuzzedTensor, Fuzzer, ParameterAlias
from .measurement import Measurement, TaskSpec, ordered_unique, select_unit, trim_sigfig, unit_to_english
from .timer import Language, Timer, set_torch_threads, timer

__all__ = [
    "Colorize",
    "Compare",
    "FuzzedParameter",
    "FuzzedSparseTensor",
    "FuzzedTensor",
    "Fuzzer",
    "Language",
    "Measurement",
    "ParameterAlias",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]
__getattr__ = refuse_unknown(__name__)
