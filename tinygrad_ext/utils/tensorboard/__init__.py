"""`SummaryWriter` for TensorBoard: that of the package tensorboardX, or one that writes by the package tensorboard.

Neither is needed to import this package, which looks for them when a name is asked for.
"""

import importlib

from tinygrad_ext.core.call.boundary import boundary

_NAMES = "SummaryWriter", "FileWriter"


@boundary
def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import tensorboardX as found  # lazy: an optional package, asked for by this name alone
    except ImportError:
        try:
            found = importlib.import_module(f"{__name__}.writer")  # lazy: reads the optional package tensorboard
        except ImportError as missing:
            raise ModuleNotFoundError(
                f"utils.tensorboard.{name} needs the package tensorboard or tensorboardX: python -m pip install "
                f"tensorboard ({missing})"
            ) from None
    return getattr(found, name)
