"""One record per op, one family per file. FAMILIES is the order in which they are registered.

For users `ops` holds the namespaces: `ops.aten.add`, `ops.<plugin>.<op>`. The first use of a plugin's loads it.
"""

import os
import sys

from tinygrad_ext.core.boundary import boundary as _boundary

FAMILIES = (
    "arithmetic",
    "compare",
    "logical",
    "elementary",
    "rounding",
    "powers",
    "special",
    "activation",
    "create",
    "random",
    "convert",
    "view",
    "window",
    "putback",
    "join",
    "rearrange",
    "pad",
    "index",
    "index_along",
    "masks",
    "gather",
    "sort",
    "search",
    "reduce",
    "moments",
    "norms",
    "scan",
    "linalg",
    "systems",
    "einsum",
    "softmax",
    "normalize",
    "loss",
    "class_loss",
    "likelihood",
    "conv",
    "pool",
    "pool3d",
    "embed",
)
# compiled modules whose kernels the records name
NATIVE = (
    "create",
    "ranges",
    "convert",
    "view",
    "window",
    "putback",
    "join",
    "rearrange",
    "basic_index",
    "masks",
    "advanced",
    "index_along",
    "index",
    "gather",
    "sort",
    "search",
    "reduce",
    "moment",
    "median",
    "scan",
    "matmul",
    "softmax",
    "norm",
    "loss",
    "class_loss",
    "convolution",
    "pool",
    "embed",
    "sample",
)


def is_part(name):
    """Whether `tinygrad_ext.ops.<name>` is a part of the package itself, so that no namespace may be called so."""
    if name in FAMILIES:  # records, which nobody imports by name once they are registered
        return False
    return name in globals() or os.path.exists(os.path.join(__path__[0], name + ".py"))


@_boundary
def __getattr__(name):
    registry = sys.modules.get("tinygrad_ext.registry")  # the build reads the records without the package
    if name.startswith("_") or registry is None or "aten" not in registry.namespaces or is_part(name):
        raise AttributeError(f"module 'tinygrad_ext.ops' has no attribute '{name}'")
    return registry.namespace(name)


def __dir__():
    from tinygrad_ext import plugins, registry

    return sorted({*registry.namespaces, *plugins.declared()})
