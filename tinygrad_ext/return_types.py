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

_fields = {}  # name -> names of the items; of ops of one name those of the last one
_of_aten = []  # what `declare` gave for the package's own ops
_types = {}  # what `declare` gave -> its type, and the twin for out=


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


def declare(schema, place=""):
    """(name, names of the items) of an op's results: what `types_of` takes, the same for all of its overloads.

    The name of a plugin's op bears its namespace too, that of a function of linalg its module.
    """
    name = place + schema.name if schema.namespace == "aten" else f"{schema.namespace}_{schema.name}"
    what = name, tuple([r.name for r in schema.returns])
    if schema.namespace == "aten" and _fields.get(name) != what[1]:
        _of_aten.append(what)
    _fields[name] = what[1]
    return what


def types_of(what):
    """The type of an op's results, and that of the same results where the caller gave their tensors."""
    if what not in _types:
        name, fields = what
        _types.setdefault(what, (_made(name, fields), _made(name + "_out", fields)))
    return _types[what]


def __getattr__(name):
    if name == "all_return_types":
        return globals().setdefault(name, [kind for what in _of_aten for kind in types_of(what)])
    for known, out in ((name, False), (name.removesuffix("_out"), True)):
        if known in _fields:
            return types_of((known, _fields[known]))[out]
    raise no_attribute(__name__, name, __dir__())


def __dir__():
    return sorted({"all_return_types", *_fields, *(name + "_out" for name in _fields)})
