"""Arguments of a node as its target declares them: by name, with what the declaration has where nothing is given."""

import inspect
from collections import namedtuple

ArgsKwargsPair = namedtuple("ArgsKwargsPair", "args kwargs")
_BY_KEYWORD = {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}


def normalized(target, args, kwargs, by_keyword):
    """The ArgsKwargsPair of a call; None where nobody knows what the target takes, where it does not take these, and
    where several overloads may, which differ by kinds that a node does not tell."""
    fitting = [pair for pair in (_bound(s, args, kwargs) for s in _signatures(target)) if pair is not None]
    if len(fitting) != 1:
        return None
    ((signature, bound),) = fitting
    bound.apply_defaults()
    if not by_keyword:
        return ArgsKwargsPair(bound.args, bound.kwargs)
    if not _BY_KEYWORD.issuperset(p.kind for p in signature.parameters.values()):
        return None
    return ArgsKwargsPair((), dict(bound.arguments))


def _bound(signature, args, kwargs):
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    for name, value in bound.arguments.items():  # what is given one by one for a list has no name
        if signature.parameters[name].annotation is list and not isinstance(value, (list, tuple)):
            return None
    return signature, bound


def _signatures(target):
    """Signatures of the overloads of an op, or that of a Python function."""
    candidates = getattr(target, "candidates", None)
    if candidates is not None:
        return [_of_schema(op.schema) for op in candidates]
    try:
        return [inspect.signature(target)]
    except (TypeError, ValueError):
        return []


def _of_schema(schema):
    kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    declared = sorted(schema.args, key=lambda a: a.kwarg_only)
    # what has no default may stand behind what has one in a schema, not in a signature
    last = max((i for i, a in enumerate(declared) if not a.has_default and not a.kwarg_only), default=-1)
    return inspect.Signature(
        [
            inspect.Parameter(
                {"self": "input"}.get(a.name, a.name),
                kinds[a.kwarg_only],
                default=a.default if a.has_default and (i > last or a.kwarg_only) else inspect.Parameter.empty,
                annotation=list if a.is_list and a.type.startswith("Tensor") else inspect.Parameter.empty,
            )
            for i, a in enumerate(declared)
        ]
    )
