"""The switch that PyTorch's constructors of sparse tensors ask: here they check their parts in any case."""

import functools

_told = [False]


class check_sparse_tensor_invariants:
    """Say whether sparse tensors are checked when they are made: as a context, on a function, or for good.

    The constructors here always check that the parts go together, so the switch is kept and changes nothing.

        >>> import tinygrad_ext as tg
        >>> with tg.sparse.check_sparse_tensor_invariants():
        ...     print(tg.sparse.check_sparse_tensor_invariants.is_enabled())
        True
    """

    def __init__(self, enable=True):
        self.state, self.saved_state = enable, None

    @staticmethod
    def is_enabled():
        """Whether it is on."""
        return _told[0]

    @staticmethod
    def enable():
        """Turn it on."""
        _told[0] = True

    @staticmethod
    def disable():
        """Turn it off."""
        _told[0] = False

    def __enter__(self):
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for "
                "context nesting."
            )
        self.saved_state, _told[0] = _told[0], self.state

    def __exit__(self, *error):
        _told[0], self.saved_state = self.saved_state, None

    def __call__(self, mth):
        """The function, in this context each time that it is called."""

        @functools.wraps(mth)
        def inside(*args, **kwargs):
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return inside
