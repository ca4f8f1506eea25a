"""What `inspect.signature` and `help` show of an op's function or method: one signature, and all overloads.

Read off the records when somebody asks; imported then, and not with the package.
"""

import inspect
from keyword import iskeyword

from tinygrad_ext.core.call.callables import OpMethod
from tinygrad_ext.describe import stubs
from tinygrad_ext.registry import variants
from tinygrad_ext.registry.compiler import default_of

_POSITIONAL, _KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
_VARIABLE = inspect.Parameter.VAR_POSITIONAL


class _Unset:
    """Default of a parameter that only some of the overloads have."""

    def __repr__(self):
        return "..."


_unset = _Unset()


def signature_of(f):
    """inspect.Signature of a function or method.

    With several overloads, one that every call of each of them fits: the parameters of the longest, then those that
    only others have. What an overload does without is optional; `help` lists the overloads one by one.
    """
    overloads = [_parameters(f, o) for o in f.candidates]
    return inspect.Signature(overloads[0] if len(overloads) == 1 else _merged(overloads))


def text_signature_of(f):
    """`__text_signature__`: the same as text, with "$self" as compiled methods of Python have it."""
    text = str(signature_of(f))
    return "($" + text[1:] if isinstance(f, OpMethod) and text.startswith("(self") else text


def doc_of(f):
    """Docstring: a line for each way to call, then what the overloads do."""
    lines = dict.fromkeys(line for o in f.candidates for line in _calls(f, o))
    docs = {}
    for o in f.candidates:
        given = [p for p in _shown(f, _parameters(f, o)) if p.kind is not _KEYWORD]
        docs.setdefault(inspect.cleandoc(o.record.doc or ""), f"{f.__name__}{inspect.Signature(given)}")
    first, *others = docs
    paragraphs = [first, *(f"{docs[doc]}: {doc}" for doc in others)]
    return "\n\n".join(filter(None, ["\n".join(lines), *paragraphs]))


def _calls(f, o):
    """Texts such as "sum(dim, keepdim=False) -> Tensor": each way to call an overload."""
    parameters = _parameters(f, o)
    ways = [parameters]
    if (unpacked := _unpacked(o, parameters)) is not None:
        ways.append(unpacked)
    return [f"{f.__name__}{inspect.Signature(_shown(f, way))} -> {_returned(f, o)}" for way in ways]


def _shown(f, parameters):
    return parameters[1:] if isinstance(f, OpMethod) else parameters


def _parameters(f, o):
    """The parameters of one overload."""
    out = []
    varargs = stubs.varargs(o)
    for a in o.schema.args:
        name = "input" if a.name == "self" and not isinstance(f, OpMethod) else a.name
        name += "_" * iskeyword(name)  # random_(from, to): a Python signature cannot spell it
        default = default_of(a) if a.has_default else inspect.Parameter.empty
        if a.name == varargs:
            out.append(inspect.Parameter(name, _VARIABLE))
        else:
            out.append(inspect.Parameter(name, _KEYWORD if a.kwarg_only else _POSITIONAL, default=default))
    if "out" in variants(o.record) and not isinstance(f, OpMethod) and not stubs.is_inplace(f):
        out.append(inspect.Parameter("out", _KEYWORD, default=None))
    return out


def _unpacked(o, parameters):
    """The parameters with a last list of sizes given one by one, `zeros(2, 3)`; None where that cannot be."""
    name = stubs.unpacked(o)
    if name is None:
        return None
    given = [p.replace(kind=_VARIABLE, default=inspect.Parameter.empty) if p.name == name else p for p in parameters]
    return [p for p in given if p.kind is not _KEYWORD] + [p for p in given if p.kind is _KEYWORD]


def _merged(overloads):
    found = {}
    for parameters in sorted(overloads, key=_length, reverse=True):
        for p in parameters:
            known = found.setdefault(p.name, p)
            if p.kind < known.kind:  # an enum in the order of a signature
                found[p.name] = known.replace(kind=p.kind)
    out, optional = [], False
    for p in sorted(found.values(), key=lambda p: p.kind):
        if p.kind is not _VARIABLE:
            optional = (optional and p.kind is _POSITIONAL) or _optional(p.name, overloads)
            if optional and p.default is p.empty:
                p = p.replace(default=_unset)
        out.append(p)
    return out


def _length(parameters):
    return sum(p.kind is _POSITIONAL for p in parameters)


def _optional(name, overloads):
    """Whether a call may do without a parameter; where more may follow by position, its place is taken by those."""
    closed = [{p.name: p for p in ps} for ps in overloads if all(p.kind is not _VARIABLE for p in ps)]
    own = [{p.name: p for p in ps} for ps in overloads]
    return any(name not in ps for ps in closed) or any(
        name in ps and ps[name].default is not inspect.Parameter.empty for ps in own
    )


def _returned(f, o):
    returns = o.schema.returns
    if stubs.is_inplace(f):
        return "Tensor"
    if len(returns) == 1:
        return _type(returns[0])
    return f"({', '.join(f'{_type(r)} {r.name or str()}'.strip() for r in returns)})" if returns else "None"


def _type(r):
    return f"tuple of {r.type}s" if r.is_list else r.type
