"""What a captured program asks of how its tensors lie in memory: strides, offsets, whether they have gaps.

A graph holds for tensors of which the answers are the same. Each is noted with what it was asked of: an argument, or a
tensor from outside; strides of an argument that lies row by row are products of its sizes, so that the graph holds for
all sizes. What was computed lies as all of them do, which is noted without telling more.
"""

import sys

from .aliases import CaptureError

# modules that pass a question on
_ANSWERING = {*(f"{__package__}.{name}" for name in ("layouts", "reading", "capture")), "tinygrad_ext.tensor.asked"}


def lies_by_rows(tensor):
    """Whether the strides are those of rows behind each other, as sizes multiplied tell them."""
    step = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride())):
        if stride != step:
            return False
        step *= size
    return True


class Layouts:
    """The half of a Reader that answers for memory. Needs of the class it is part of: capture.

    Attributes:
        lying: {(id of what was asked, question, more): (tensor, or None for any that was computed; question, more)}.
            more: arguments of the question.
    """

    def __init__(self):
        self.lying = {}

    def read_stride(self, tensor, dim=None):
        traced = self.capture.traced(tensor)
        self._refuse_written(traced, "stride")
        found = traced.example.stride() if dim is None else traced.example.stride(dim)
        source = self._source(traced)
        if source is None or not lies_by_rows(traced.example):
            return self._asked(source, "stride", (), found)
        steps = [1]
        for size in reversed(self.sizes(traced)[1:] if dim is None else self.sizes(traced)[dim % tensor.dim() + 1 :]):
            steps.append(size if steps[-1] is steps[0] else size * steps[-1])
        return self._asked(source, "rows", (), tuple(reversed(steps)) if dim is None else steps[-1])

    def read_is_contiguous(self, tensor, *args):
        return self._read("is_contiguous", tensor, args)

    def read_is_conj(self, tensor):
        return self._read("is_conj", tensor)

    def read_is_neg(self, tensor):
        return self._read("is_neg", tensor)

    def read_storage_offset(self, tensor):
        return self._read("storage_offset", tensor)

    def look_at_memory(self, tensor, name, args):
        """Note what is asked of a tensor that was there before, which answers itself."""
        more = args if name == "is_contiguous" else ()
        self._asked(tensor, name, more, None)

    def _read(self, name, tensor, args=()):
        traced = self.capture.traced(tensor)
        self._refuse_written(traced, name)
        return self._asked(self._source(traced), name, args, getattr(traced.example, name)(*args))

    def _source(self, traced):
        """The tensor from outside, or the argument, that a window shows as it came; None for what was computed."""
        return None if traced.path or traced.root.version else self._given(traced.root)

    def _given(self, root):
        given = (a.tensor for a in self.capture.arguments.values() if a.shown.value.root is root)
        return next(given, root.tensor)

    def _refuse_written(self, traced, name):
        """What was written to stands for a tensor of its own here, which lies otherwise than one with gaps does."""
        given = self._given(traced.root) if traced.root.version else None
        dense = given is None or (lies_by_rows(given) and not given.storage_offset())
        if not dense and self._is_the_program_that_asks():
            raise CaptureError(
                f"{name}() of a tensor with gaps that was written to before: ask before that, or write to a clone()"
            )

    def _asked(self, tensor, name, more, answer):
        """Note what was asked; the answer. What the library asks for itself decides how results lie alone."""
        if self._is_the_program_that_asks():
            self.lying[id(tensor), name, more] = tensor, name, more
        return answer

    def _is_the_program_that_asks(self):
        frame = sys._getframe(1)
        while frame.f_globals.get("__name__") in _ANSWERING:
            frame = frame.f_back
        return not frame.f_globals.get("__name__", "").startswith("tinygrad_ext.")
