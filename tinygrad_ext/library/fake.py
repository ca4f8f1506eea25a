"""Fake kernels: shapes and dtypes without data, for meta tensors."""

import threading

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor

_local = threading.local()


def rule(op, fn):
    """A shape rule (*args) for a fake kernel, which gets its arguments as a kernel does. Checks what it returns."""
    names = tuple(a.name for a in op.schema.args)
    positional = sum(not a.kwarg_only for a in op.schema.args)

    def run(*args):
        before = getattr(_local, "op", None)
        _local.op = op
        try:
            result = fn(*args[:positional], **dict(zip(names[positional:], args[positional:], strict=True)))
        finally:
            _local.op = before
        return _checked(op, args, result)

    return run


def refusal(op):
    """The shape rule of an op that has no fake kernel."""

    def run(*args):
        raise NotImplementedError(
            f"{op.name}: there is no fake kernel, so the op cannot run on meta tensors. Register one with "
            f"library.register_fake('{op.name}'): a function of the same arguments that returns empty tensors of the "
            "right shape and dtype"
        )

    return run


def _checked(op, args, result):
    returns = op.schema.returns
    row = (result,) if len(returns) == 1 else () if not returns and result is None else result
    if not isinstance(row, (tuple, list)) or len(row) != len(returns):
        raise RuntimeError(
            f"{op.name}: the fake kernel returned {type(result).__name__}, but the op is declared as {op.schema}"
        )
    for r, value in zip(returns, row, strict=True):
        for t in value if isinstance(value, (tuple, list)) else (value,):
            if r.type != "Tensor" or (t is None and r.optional):
                continue
            if not isinstance(t, Tensor):
                raise RuntimeError(
                    f"{op.name}: the fake kernel returned a {type(t).__name__} where {r.spelling} is declared"
                )
            if t.device.type != "meta" and not any(t is a for a in args):
                raise RuntimeError(
                    f"{op.name}: the fake kernel returned a tensor on {t.device}, where data could be read. Make it "
                    "like the "
                    "arguments: torch.empty_like(x), x.new_empty(shape)"
                )
    return tuple(row) if len(returns) > 1 else result


class FakeContext:
    """What `get_ctx()` gives inside a fake kernel."""

    def __init__(self, op):
        self._op = op

    def new_dynamic_size(self, *, min=0, max=None):
        """A size that only the data tell. RuntimeError: meta tensors have no data, and sizes here are numbers."""
        raise RuntimeError(
            f"{self._op.name}: the size of the result depends on the data, so the op has no shape on meta tensors. Run "
            "it on the "
            "cpu, or return a result of the largest size and the number of valid elements"
        )

    create_unbacked_symint = new_dynamic_size


@boundary
def get_ctx():
    """The context of the running fake kernel. RuntimeError outside of one."""
    op = getattr(_local, "op", None)
    if op is None:
        raise RuntimeError(
            "library.get_ctx(): there is no fake kernel running; it is for use inside register_fake's function"
        )
    return FakeContext(op)
