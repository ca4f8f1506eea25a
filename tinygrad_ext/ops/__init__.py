"""One record per op, one family per file. FAMILIES is the order in which they are registered.

For users `ops` holds the namespaces: `ops.aten.add`, `ops.<plugin>.<op>`. The first use of a plugin's loads it.
"""

import os

from tinygrad_ext.core.call.boundary import boundary as _boundary
from tinygrad_ext.core.call.later import later as _later

FAMILIES = (
    "arithmetic",
    "combined",
    "compare",
    "logical",
    "elementary",
    "rounding",
    "powers",
    "special",
    "bessel",
    "gaussian",
    "incomplete",
    "polynomials",
    "angles",
    "activation",
    "smooth_activation",
    "bounds",  # before the ops of numbers, which would read a tensor of one element
    "create",
    "random",
    "random_normal",
    "variates",
    "convert",
    "view",
    "expand",
    "window",
    "putback",
    "copies",
    "join",
    "assemble",
    "rearrange",
    "repeat",
    "pad",
    "index",
    "index_along",
    "masks",
    "gather",
    "sort",
    "search",
    "segments",
    "quantize",
    "compressed",
    "reduce",
    "moments",
    "statistics",
    "counting",
    "histograms",
    "norms",
    "distances",
    "row_pairs",
    "shuffle",
    "scan",
    "fft",
    "frequencies",
    "windows_signal",
    "stft",
    "ldl",
    "linalg",
    "vectors",
    "products",
    "systems",
    "determinants",
    "factors",
    "cholesky",
    "lu",
    "orthogonal",
    "spectral",
    "pseudoinverse",
    "least_squares",
    "tensor_equations",
    "einsum",
    "softmax",
    "normalize",
    "group_norm",
    "neighbours",
    "recurrent_steps",
    "recurrent",
    "recurrent_packed",
    "packing",
    "margins",
    "attention",
    "attention_step",
    "attention_heads",
    "loss",
    "class_loss",
    "likelihood",
    "conv",
    "transposed",
    "convolution",
    "columns",
    "pool_values",
    "pool",
    "pool3d",
    "volumes",
    "resize",
    "grids",
    "grid_sample",
    "dropout",
    "embed",
    "bags",
    "ctc",
    "sampled",
    "label_sets",
    "positional",
    "boxes",
    "table_forms",
    "top_forms",
)
# compiled modules whose kernels the records name
NATIVE = (
    "create",
    "convert",
    "basic_index",
    "index",
    "plain_calls",
)


_namespace = _names = None  # slots of the registry, filled when the built-in ops are in it


def set_namespaces(find, names):
    """find(name): the ops of a namespace. names(): those that are there or that a plugin declares."""
    global _namespace, _names
    _namespace, _names = find, names


def is_part(name):
    """Whether `tinygrad_ext.ops.<name>` is a part of the package itself, so that no namespace may be called so."""
    if name in FAMILIES:  # records, which nobody imports by name once they are registered
        return False
    return name in globals() or os.path.exists(os.path.join(__path__[0], name + ".py"))


@_boundary
def load_library(path):
    """Load a compiled extension, a shared library made with tgx.h; its ops are in their namespaces afterwards.

    path: of the library. What it needs is compared with what is here before any of its code runs, and a failing init
    leaves nothing behind. A second call for one file does nothing.
    Raises OSError for a file that is no extension, ImportError for one made for another table, and what init raises.
    """
    return _later("extensions").load_library(path)


@_boundary
def __getattr__(name):
    found = of_pytorch and of_pytorch[-1](name)
    if found:
        return found
    if name.startswith("__") or _namespace is None or is_part(name) or (name[0] == "_" and name not in _names()):
        raise AttributeError(f"module 'tinygrad_ext.ops' has no attribute '{name}'")
    return _namespace(name)


of_pytorch = []  # under the alias: what stands for namespaces of PyTorch's own parts


def __dir__():
    return sorted(_names())
