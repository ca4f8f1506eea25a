"""`SummaryWriter` of the package tensorboardX, where it is installed."""

from tinygrad_ext.core.call.boundary import boundary


@boundary
def __getattr__(name):
    if name != "SummaryWriter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import tensorboardX  # lazy: an optional package, asked for by this name alone
    except ImportError:
        raise ModuleNotFoundError(
            "utils.tensorboard.SummaryWriter needs the package tensorboardX: python -m pip install tensorboardX"
        ) from None
    return getattr(tensorboardX, name)
