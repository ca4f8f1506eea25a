"""A level that writes down every operation of a program, and one that counts them.

    >>> import tinygrad_ext as tg
    >>> with Recorder() as tape, Counter() as counts:
    ...     x = tg.ones(2, requires_grad=True)
    ...     (x * x).sum().backward()
    >>> [name for name, line in tape.seen]
    ['aten::ones', 'aten::mul.Tensor', 'aten::sum', 'aten::expand', 'aten::mul_conj', 'aten::mul_conj', \
'aten::add_.Tensor', 'autograd::accumulate_grad']
    >>> counts.calls["aten::mul.Tensor"]
    1
"""

from collections import Counter as _Tally

from tinygrad_ext.overrides import Observer, user_line


class Recorder(Observer):
    """Notes each operation and the user's line it comes from; ``seen`` is a list of both.

    Composites are noted as a whole. With ``open=True`` the operations they are written in are noted too.
    """

    def __init__(self, open=False):
        self.open, self.seen = open, []

    def process(self, operation, args):
        self.seen.append((operation.name, user_line()))
        return NotImplemented if self.open else operation(*args)


class Counter(Observer):
    """Counts operations by name in ``calls``."""

    def __init__(self):
        self.calls = _Tally()

    def process(self, operation, args):
        self.calls[operation.name] += 1
        return operation(*args)
