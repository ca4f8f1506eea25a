"""The types of scripts by PyTorch's names for their kinds: `StringType.get()`, `ListType(IntType.get())`."""

from tinygrad_ext.graph.types import INT, KINDS, TENSOR, Type, list_of, optional


class _Kind(type):
    """A kind: `isinstance` asks a type whether it is one of it."""

    def __instancecheck__(cls, type):
        return isinstance(type, Type) and type.word == cls._word


def _plain(name, word):
    found = Type(word)
    members = {"__doc__": f"The type {found}.", "_word": word, "__new__": lambda cls: found}
    return _Kind(name, (), {**members, "get": staticmethod(lambda: found)})


def _of(name, word, make):
    return _Kind(name, (), {"__doc__": f"Types {word}[...].", "_word": word, "__new__": lambda cls, *args: make(*args)})


class TensorType(metaclass=_Kind):
    """The type Tensor: it says nothing of sizes and dtypes."""

    _word = "Tensor"

    def __new__(cls):
        return TENSOR

    @staticmethod
    def get():
        return TENSOR

    getInferred = get  # where no annotation says that it is one


_PLAIN = ("Int", "Float", "Bool", "Complex", "String", "None", "Number", "Any", "DeviceObj")
_WORDS = {kind: word for word, kind in KINDS.items() if kind != "IntType" or word == "int"}
globals().update({f"{name}Type": _plain(f"{name}Type", _WORDS[f"{name}Type"]) for name in _PLAIN})
ListType = _of("ListType", "List", list_of)
OptionalType = _of("OptionalType", "Optional", optional)
DictType = _of("DictType", "Dict", lambda key, value: Type("Dict", (key, value)))
TupleType = _of("TupleType", "Tuple", lambda parts: Type("Tuple", parts))
UnionType = _of("UnionType", "Union", lambda parts: Type("Union", parts))
ListType.ofInts = staticmethod(lambda: list_of(INT))
ListType.ofTensors = staticmethod(lambda: list_of(TENSOR))
_OF_TYPES = ("Tensor", "List", "Optional", "Dict", "Tuple", "Union")
NAMES = frozenset(f"{name}Type" for name in (*_PLAIN, *_OF_TYPES))
