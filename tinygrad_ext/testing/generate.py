"""Samples made up from a schema, for ops whose author gave none."""

from tinygrad_ext.ops.samples import Sample

SHAPES = ((2, 3), (3,), (3, 3), (), (0, 3), (1, 2, 4, 4))
_PLAIN = {"int": 1, "SymInt": 1, "float": 0.5, "bool": True, "Scalar": 2, "complex": 1j, "str": "a", "Any": 1.0}


def from_schema(schema, make):
    """One Sample for each of a few shapes; every tensor has that shape. Empty for a schema with a type we cannot make.

    Arguments with a default keep it, optional ones are None.
    """
    try:
        return [_sample(schema, make, shape) for shape in SHAPES[: 1 if not _tensors(schema) else None]]
    except KeyError:
        return []


def _tensors(schema):
    return any(a.type.startswith(("Tensor", "Dict")) for a in schema.args)


def _sample(schema, make, shape):
    required = [a for a in schema.args if not a.has_default]
    args = [_value(a, make, shape) for a in required if not a.kwarg_only]
    return Sample(*args, **{a.name: _value(a, make, shape) for a in required if a.kwarg_only})


def _value(arg, make, shape):
    if arg.optional:
        return None
    if arg.is_list:
        return [_one(arg.type, make, shape) for _ in range(arg.size or (2 if arg.type == "Tensor" else 1))]
    return _one(arg.type, make, shape)


def _one(type, make, shape):
    if type == "Tensor":
        return make(*shape)
    if type.startswith("Dict(str,"):
        return {"a": _one(type.partition(",")[2].strip(" )"), make, shape)}
    if type == "ScalarType":
        return make.dtype
    if type == "Device":
        return "cpu"
    return _PLAIN[type]
