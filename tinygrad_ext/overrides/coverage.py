"""Runs every overridable function with instances of a class, and tells what became of the calls."""

import inspect
import warnings

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.callables import OpFunction
from tinygrad_ext.core.data.dtype import by_name
from tinygrad_ext.core.data.random import default_generator
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.ops import samples
from tinygrad_ext.overrides.protocol import get_default_nowrap_functions
from tinygrad_ext.overrides.tables import get_overridable_functions, resolve_name
from tinygrad_ext.overrides.watch import Watch

STATUSES = ("handled", "falls back", "raises", "skipped")


class Row:
    """What became of one function: its `name`, a `status` out of STATUSES, and the `detail`."""

    __slots__ = ("detail", "func", "name", "status")

    def __init__(self, func, status, detail):
        self.func, self.name, self.status, self.detail = func, resolve_name(func), status, detail

    def __repr__(self):
        return f"{self.status:10}  {self.name}  {self.detail}".rstrip()


class Report:
    """What `check` found.

    Attributes:
        cls: the class. rows: a `Row` for each function, in the order of `get_overridable_functions`.

    `str()` gives a table, `counts` the number of functions by status, `to_dict()` plain values.
    """

    def __init__(self, cls, rows):
        self.cls, self.rows = cls, rows

    @property
    def counts(self):
        """{status: number of functions}"""
        return {status: sum(row.status == status for row in self.rows) for status in STATUSES}

    def of(self, status):
        """The rows of one status."""
        return [row for row in self.rows if row.status == status]

    def to_dict(self):
        """{"class": name, "counts": {...}, "functions": {name: {"status": ..., "detail": ...}}}"""
        functions = {row.name: {"status": row.status, "detail": row.detail} for row in self.rows}
        return {"class": self.cls.__qualname__, "counts": self.counts, "functions": functions}

    def __str__(self):
        width = max((len(row.name) for row in self.rows), default=0)
        head = f"{self.cls.__qualname__}: " + ", ".join(f"{n} {status}" for status, n in self.counts.items() if n)
        lines = [
            f"{row.status:10}  {row.name:{width}}  {row.detail}".rstrip()
            for status in STATUSES
            for row in self.of(status)
        ]
        return "\n".join([head, *lines])

    def __repr__(self):
        return f"<report of {str(self).partition(chr(10))[0]}>"


@boundary
def check(cls, factory=None, *, functions=None):
    """Call every overridable function with instances of cls in place of tensors.

    A function is "handled" when the answer is an instance of cls or no tensor at all; it "falls back" when the answer
    is a plain Tensor, or when cls was not asked; it "raises"; or it is "skipped", because there is no sample to call
    it with or the factory refuses the sample.

    Arguments:
        cls: a class with a `__torch_function__`, or one that a handler is registered for.
        factory: factory(tensor) makes an instance that stands for a plain tensor; `tensor.as_subclass(cls)` for a
            subclass of Tensor and `cls(tensor)` otherwise.
        functions: the functions to call, all of them unless given.

    Returns a `Report`; print it. The random state is left as it was.

        >>> import tinygrad_ext as tg
        >>> class Plain(tg.Tensor):
        ...     pass
        >>> tg.overrides.check(Plain, functions=[tg.add, tg.Tensor.tolist]).counts
        {'handled': 2, 'falls back': 0, 'raises': 0, 'skipped': 0}
    """
    if not isinstance(cls, type):
        raise TypeError(f"check(): argument 'cls' must be a class, not {type(cls).__name__}")
    if factory is None:
        factory = (lambda t: t.as_subclass(cls)) if issubclass(cls, Tensor) else cls
    if functions is None:
        functions = dict.fromkeys(f for found in get_overridable_functions().values() for f in found)
    state = default_generator.get_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Report(cls, [_row(f, cls, factory) for f in functions])
    finally:
        default_generator.set_state(state)


def _row(f, cls, factory):
    sample = _sample(f)
    if sample is None:
        return Row(f, "skipped", "no sample with a tensor to call it with")
    try:
        args, kwargs = _replaced(sample.args, factory), _replaced(sample.kwargs, factory)
    except Exception as error:
        return Row(f, "skipped", f"the factory raised {type(error).__name__}: {_line(error)}")
    with Watch() as watch:
        try:
            result = f(*args, **kwargs)
        except (Exception, SystemExit) as error:
            return Row(f, "raises", f"{type(error).__name__}: {_line(error)}")
    if not any(rung.who is cls for rung in watch.rungs):
        return Row(f, "falls back", "was not asked")
    if _holds(result, cls) or not _holds(result, Tensor) or f in get_default_nowrap_functions():
        return Row(f, "handled", f"returned {type(result).__name__}")
    return Row(f, "falls back", f"returned {type(result).__name__}")


def _line(error):
    return str(error).partition("\n")[0]


def _holds(result, cls):
    if isinstance(result, (tuple, list)):
        return any(_holds(r, cls) for r in result)
    return isinstance(result, cls)


# ---- samples -------------------------------------------------------------------------------------------------------


def _sample(f):
    """The first sample that plain tensors pass, fresh."""
    for make in _makers(f):
        for i in range(len(make())):
            sample = make()[i]
            if not _holds((*sample.args, *sample.kwargs.values()), Tensor):
                continue
            try:
                f(*sample.args, **sample.kwargs)
            except Exception:  # of another dtype, or not for an in-place form
                continue
            return make()[i]
    return None


def _makers(f):
    """Functions that make the samples of f: by overload and dtype for a record's, else from the signature."""
    if isinstance(f, OpFunction):
        for o in f.candidates:
            for dtype in ("float32", "int64", "bool", "complex64"):
                yield lambda o=o, dtype=dtype: samples.of_record(
                    o.record, o.schema, samples.Maker(by_name[dtype], o.record.domain)
                )
    else:
        for dtype in ("float32", "int64", "complex64"):
            yield lambda dtype=dtype: _from_signature(f, samples.Maker(by_name[dtype]))


def _from_signature(f, make):
    """Tensors for all arguments without a default: matrices, or single elements that can be a number or a truth."""
    if inspect.ismethodwrapper(f):  # the getter or setter of an attribute
        required = 1 + (f.__name__ == "__set__")
    else:
        try:
            parameters = inspect.signature(f).parameters.values()
        except ValueError:  # a method of C, which Python knows no signature of
            parameters = ()
        required = sum(p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD for p in parameters) or 1
    return [samples.Sample(*(make(*shape) for _ in range(required))) for shape in ((2, 2), ())]


def _replaced(value, factory):
    """Tensors of arguments, and of the lists among them, as the factory makes them."""
    if type(value) is Tensor:
        return factory(value)
    if isinstance(value, dict):
        return {k: _replaced(v, factory) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_replaced(v, factory) for v in value)
    return value
