"""The libraries under test, and the values they are given."""

import importlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Library:
    """One library: its module, and how an array becomes its tensor."""

    name: str
    module: object

    def tensor(self, values, grad=False):
        """A tensor with a copy of an array's values."""
        if self.name == "numpy":
            return values
        if self.name == "jax":
            return self.module.numpy.asarray(values)
        t = self.module.tensor(np.ascontiguousarray(values))
        return t.requires_grad_() if grad else t


# libraries that run those cases alone that name them
OTHERS = ("numpy", "torch.compile", "jax", "python", "tvm_ffi", "c", "built-in")
MODULES = {"torch.compile": "torch", "python": "math", "c": "ctypes", "built-in": "tinygrad_ext"}


def load(threads, wanted=()):
    """Ours first, then PyTorch and NumPy where installed, all with the given number of threads.

    wanted: names of others; PyTorch's compiler and JAX are there where they are installed.
    """
    return [*_usual(threads), *(lib for name in OTHERS[1:] if name in wanted for lib in _other(name))]


def _other(name):
    try:
        return [Library(name, importlib.import_module(MODULES.get(name, name)))]
    except ImportError:
        return []


def _usual(threads):
    found = []
    for name in ("tinygrad_ext", "torch", "numpy"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if name != "numpy":  # NumPy's threads are an environment variable, see __main__.py
            module.set_num_threads(threads)
        found.append(Library(name, module))
    return found


class Draw:
    """Makes the operands of a case, the same values for each library.

    `draw(lib, 2, 4)` is a tensor of the variant's dtype; when the variant is strided, every second element of a
    longer one. `draw.ints` and `draw.array` follow no variant.
    """

    def __init__(self, seed, dtype="float32", strided=False):
        self.dtype, self.strided = dtype, strided
        self._random = np.random.default_rng(seed)

    def array(self, *shape, low=-1.0, high=1.0):
        """NumPy array of the variant's dtype; integers lie between -10 and 10."""
        if self.dtype.startswith("int"):
            return self._random.integers(-10, 10, shape).astype(self.dtype)
        return self._random.uniform(low, high, shape).astype(self.dtype)

    def ints(self, lib, high, *shape):
        """int64 tensor in [0, high)."""
        return lib.tensor(self._random.integers(0, high, shape))

    def __call__(self, lib, *shape, grad=False):
        if not self.strided:
            return lib.tensor(self.array(*shape), grad)
        wide = lib.tensor(self.array(*shape[:-1], 2 * shape[-1]), grad)
        return wide[..., ::2] if not grad else wide.detach()[..., ::2].requires_grad_()
