"""Types of graph values, written as TorchScript writes them: `Tensor`, `Optional[int]`, `Dict[str, List[Tensor]]`.

A type is a word and the types in its brackets. Names that are no word of the table are classes of the user's program.
"""

import re
import weakref

_TOKEN = re.compile(r"\s*([A-Za-z_][\w.]*|\[|\]|,)", re.A)

# word -> how many types stand in its brackets; None: any number
ARITY = {
    **dict.fromkeys(("Tensor", "int", "float", "bool", "complex", "str", "NoneType", "Scalar"), 0),
    **dict.fromkeys(("Device", "ScalarType", "Layout", "MemoryFormat", "Generator", "Any"), 0),
    **dict.fromkeys(("List", "Optional"), 1),
    "Dict": 2,
    **dict.fromkeys(("Tuple", "Union", "Stack"), None),
}
# the word of PyTorch for the kind of a type
KINDS = {
    "Tensor": "TensorType", "int": "IntType", "float": "FloatType", "bool": "BoolType", "complex": "ComplexType",
    "str": "StringType", "NoneType": "NoneType", "Scalar": "NumberType", "List": "ListType", "Dict": "DictType",
    "Tuple": "TupleType", "Optional": "OptionalType", "Union": "UnionType", "Any": "AnyType", "Device": "DeviceObjType",
    "Generator": "GeneratorType", "ScalarType": "IntType", "Layout": "IntType", "MemoryFormat": "IntType",
}  # fmt: skip
_made = weakref.WeakValueDictionary()  # a stranger's archive may hold as many as it likes
_SPELLED = {"List": "{}[]", "Optional": "{}?", "Dict": "Dict({}, {})"}
DEEPEST = 30  # types in the brackets of types


class Type:
    """Type of a value. Equal types are one object: compare with `is` or `==`.

    Attributes: word ("List"), args (the types in its brackets).
    """

    __slots__ = ("__weakref__", "args", "word")

    def __new__(cls, word, args=()):
        args = tuple(args)
        found = _made.get((word, args))
        if found is None:
            found = _made[word, args] = super().__new__(cls)
            found.word, found.args = word, args
        return found

    def __reduce__(self):
        return Type, (self.word, self.args)

    def __call__(self):
        """The type itself, for programs that ask a value for its type() as PyTorch's do."""
        return self

    def __str__(self):
        return f"{self.word}[{', '.join(map(str, self.args))}]" if self.args else self.word

    def __repr__(self):
        return f"<type {self}>"

    # ---- what programs ask PyTorch's types

    @property
    def annotation_str(self):
        """As an annotation: "List[int]"."""
        return str(self)

    def str(self):
        """As a schema spells it: "int[]", "Tensor?", "(int, Tensor)"."""
        inner = [arg.str() for arg in self.args]
        form = _SPELLED.get(self.word)
        if form is not None:
            return form.format(*inner)
        told = ", ".join(inner)
        return f"({told})" if self.word == "Tuple" else f"{self.word}({told})" if inner else self.word

    def kind(self):
        """PyTorch's word: "TensorType", "ListType"; "ClassType" of a class."""
        return KINDS.get(self.word, "ClassType")

    def isSubtypeOf(self, other):
        """Whether a value of this type may stand where the other is declared."""
        return accepts(other, self)

    def getElementType(self):
        """What a list or an Optional holds."""
        return self.args[0]

    def getKeyType(self):
        return self.args[0]

    def getValueType(self):
        return self.args[1]

    def elements(self):
        """The types in the brackets of a tuple."""
        return list(self.args)

    containedTypes = elements

    def dtype(self):
        """None: of a tensor's type nothing is known but that."""

    @property
    def is_optional(self):
        """Whether None is among its values."""
        return self.word in ("NoneType", "Optional", "Any") or any(
            a.is_optional for a in self.args if self.word == "Union"
        )

    @classmethod
    def parse(cls, text):
        """Return the type that text names.

        Raises:
            ValueError: text is no type; the message shows what was expected where.
        """
        found, end = read_type(text, 0)
        if text[end:].strip():
            raise ValueError(f"type '{text}': expected its end after '{text[:end]}', found '{text[end:].strip()}'")
        return found


def read_type(text, pos, depth=0):
    """(the type that stands at pos in text, where it ends)."""
    if depth > DEEPEST:
        raise ValueError(f"expected at most {DEEPEST} types within each other at '{text[pos : pos + 20]}'")
    match = _TOKEN.match(text, pos)
    if match is None or match[1] in "[],":
        raise ValueError(f"expected a type such as Tensor or List[int] at '{text[pos : pos + 20]}'")
    word, pos, args = match[1], match.end(), []
    arity = ARITY.get(word, 0)
    following = _TOKEN.match(text, pos)
    if following is not None and following[1] == "[" and arity != 0:
        mark, pos = "[", following.end()
        while mark != "]":
            arg, pos = read_type(text, pos, depth + 1)
            args.append(arg)
            following = _TOKEN.match(text, pos)
            if following is None or following[1] not in ",]":
                raise ValueError(f"type {word}[...: expected ',' or ']' at '{text[pos : pos + 20]}'")
            mark, pos = following[1], following.end()
    if arity is not None and len(args) != arity:
        raise ValueError(f"type {word} takes {arity} type{'s' * (arity != 1)} in brackets, but {len(args)} are given")
    return Type(word, args), pos


TENSOR, INT, FLOAT, BOOL, COMPLEX, STR, NONE, SCALAR, ANY, GENERATOR = (
    Type(w) for w in ("Tensor", "int", "float", "bool", "complex", "str", "NoneType", "Scalar", "Any", "Generator")
)
DTYPE, DEVICE, LAYOUT, FORMAT = (Type(w) for w in ("ScalarType", "Device", "Layout", "MemoryFormat"))
OF_PYTHON = {bool: BOOL, int: INT, float: FLOAT, complex: COMPLEX, str: STR, type(None): NONE}
_OF_SCHEMA = {"number": SCALAR, "SymInt": INT}


def list_of(element):
    return Type("List", (element,))


def optional(inner):
    """Optional[inner]; a type that takes None already stays as it is."""
    return inner if inner.is_optional else Type("Optional", (inner,))


def of_schema(arg):
    """The type that an argument or a return of an op's schema has in a graph."""
    word = arg.type
    if word.startswith("Dict("):
        found = Type.parse(f"Dict[{word[5:-1]}]")
    else:
        found = _OF_SCHEMA.get(word) or Type(word)
    if arg.is_list:
        found = list_of(optional(found) if arg.elem_optional else found)
    return optional(found) if arg.optional else found


def accepts(wanted, given):
    """Whether a value of the type `given` may stand where `wanted` is declared."""
    if wanted is given or wanted is ANY:
        return True
    if given.word == "Union" or given.word == "Optional":
        parts = given.args if given.word == "Union" else (NONE, given.args[0])
        return all(accepts(wanted, part) for part in parts)
    if wanted.word == "Optional":
        return given is NONE or accepts(wanted.args[0], given)
    if wanted.word == "Union":
        return any(accepts(part, given) for part in wanted.args)
    if wanted is SCALAR:
        return given in (INT, FLOAT, BOOL, COMPLEX)
    if wanted.word == "Tuple" and given.word == "Tuple":
        return len(wanted.args) == len(given.args) and all(map(accepts, wanted.args, given.args))
    return False
