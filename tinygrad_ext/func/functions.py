"""vmap over a call of an autograd.Function."""


def batched(level, operation, args):
    """The outputs of a Function for a whole batch, by its own vmap staticmethod."""
    raise NotImplementedError(
        f"vmap: {operation.name}: calls of an autograd.Function inside vmap are not supported by this release; write "
        "its "
        "forward in ops there"
    )
