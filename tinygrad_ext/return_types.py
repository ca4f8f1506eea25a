"""Types of results that have names, such as what `max(x, 0)` returns: tuples whose items are attributes too.

    >>> import tinygrad_ext as tg
    >>> tg.tensor([[1.0, 3.0]]).max(1)
    torch.return_types.max(
    values=tensor([3.]),
    indices=tensor([1]))

They behave as PyTorch's, which are CPython's struct sequences: made of one sequence, `type(result)(items)`, with
`n_fields`, `__match_args__` and items that cannot be set. No struct sequence itself: the dispatcher makes a result by
`tuple.__new__`, which CPython refuses to let make one. Each type has a twin `<name>_out`.
"""

from operator import itemgetter

from tinygrad_ext.errors import no_attribute

all_return_types = []
_types = {}


def _new(cls, sequence, dict=None):
    """The items of a sequence under the names of this type."""
    try:
        items = tuple(sequence)
    except TypeError:
        raise TypeError("constructor requires a sequence") from None
    if len(items) != cls.n_fields:
        raise TypeError(f"{_title(cls)}() takes a {cls.n_fields}-sequence ({len(items)}-sequence given)")
    return tuple.__new__(cls, items)


def _title(cls):
    return f"torch.return_types.{cls.__name__}"


def _repr(self):
    rows = ",\n".join(f"{name}={item!r}" for name, item in zip(self.__match_args__, self))
    return f"{_title(type(self))}(\n{rows})"


def _reduce(self):
    return type(self), (tuple(self), {})


def _made(name, fields):
    body = {field: property(itemgetter(i), doc=f"Item {i}.") for i, field in enumerate(fields)}
    count = {"n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0}
    body |= {"__slots__": (), "__module__": __name__, "__match_args__": tuple(fields), **count}
    return type(name, (tuple,), body | {"__new__": _new, "__repr__": _repr, "__reduce__": _reduce})


def result_type(schema, place=""):
    """The type of an op's results, the same for all of its overloads.

    That of a plugin's op bears its namespace too, that of a function of linalg its module.
    """
    name = place + schema.name if schema.namespace == "aten" else f"{schema.namespace}_{schema.name}"
    fields = tuple(r.name for r in schema.returns)
    if name not in _types or _types[name].__match_args__ != fields:
        for key in (name, name + "_out"):
            _types[key] = _made(key, fields)
        if schema.namespace == "aten":
            all_return_types.extend((_types[name], _types[name + "_out"]))
    return _types[name]


def with_out(cls):
    """The type of the same results where the caller gave their tensors."""
    return _types[cls.__name__ + "_out"]


def __getattr__(name):
    if name not in _types:
        raise no_attribute(__name__, name, __dir__())
    return _types[name]


def __dir__():
    return sorted({"all_return_types", *_types})
