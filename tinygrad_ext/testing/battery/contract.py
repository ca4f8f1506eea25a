"""Does the op do what its schema says: results, writes, shared memory, shapes without data."""

import tinygrad_ext as tg
from tinygrad_ext.core.data.dtype import dtype as dtype_class
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.testing import compare, sweep
from tinygrad_ext.testing.battery.case import Case, copied
from tinygrad_ext.testing.battery.check import OP_CHECKS, check
from tinygrad_ext.testing.battery.result import NotApplicable


@check(OP_CHECKS, "samples", each="subject")
def samples(subject):
    """There are inputs to check it with."""
    cases = subject.cases(OP_CHECKS["schema"])
    because = f": {type(subject.problem).__name__}: {subject.problem}" if subject.problem else ""
    if subject.made_up:
        if not cases:
            raise AssertionError(
                f"no samples: add samples= to the record; none could be made up from {subject.op.schema}{because}"
            )
        return "made up from the schema, as far as the op takes them; samples= gives better ones"
    if subject.problem is not None:
        raise AssertionError(f"samples= raises{because}")
    if not cases:
        raise AssertionError(f"no samples: add samples= to the record of {subject.name}")
    return None


# ---- schema --------------------------------------------------------------------------------------------------------

_NUMBERS = {
    "int": int,
    "SymInt": int,
    "float": float,
    "complex": complex,
    "bool": bool,
    "str": str,
    "Tensor": tg.Tensor,
}
_NUMBERS |= {"ScalarType": dtype_class, "Scalar": (int, float, complex, bool), "Dict": dict}


@check(OP_CHECKS, "schema", any_values=True)
def schema(subject, sample, dtype):
    """The result is of the number and types that the schema declares."""
    declared, result = subject.op.schema.returns, _call(subject, sample)
    if not declared:
        if result is not None:
            raise AssertionError(f"the schema declares '-> ()', returned {_kind(result)}")
        return
    results = [result] if len(declared) == 1 else result
    if len(declared) != 1 and not isinstance(result, (tuple, list)):
        raise AssertionError(f"the schema declares {len(declared)} results, returned {_kind(result)}")
    if len(results) != len(declared):
        raise AssertionError(f"the schema declares {len(declared)} results, returned {len(results)}")
    for i, (value, r) in enumerate(zip(results, declared)):
        which = f"result {i}" if len(declared) > 1 else "the result"
        left_out = value is None and any(a.name == "output_mask" for a in subject.op.schema.args)
        if not left_out and not _is(value, r):
            raise AssertionError(f"{which} is declared as {r.spelling}, returned {_kind(value)}")
        _is_the_argument(subject, sample, value, r, which)


def _call(subject, sample):
    """The op on the sample's very tensors; without gradients, so that it may write to those that require them."""
    tg.manual_seed(0)
    with tg.no_grad():
        return sweep.function(subject.op)(*sample.args, **sample.kwargs)


def _is(value, declared):
    if value is None:
        return declared.optional
    if declared.is_list:
        return isinstance(value, (tuple, list)) and all(_is_one(v, declared) for v in value)
    return _is_one(value, declared)


def _is_one(value, declared):
    type = declared.type.partition("(")[0]
    if type in ("int", "SymInt", "float") and isinstance(value, bool):
        return False
    return (value is None and declared.elem_optional) or isinstance(value, _NUMBERS.get(type, object))


def _kind(value):
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__} of {len(value)}: {', '.join(type(v).__name__ for v in value)}"
    return (
        f"{type(value).__name__} {value!r}"
        if value is None or isinstance(value, (int, float, str))
        else type(value).__name__
    )


def _is_the_argument(subject, sample, value, declared, which):
    """What is returned as `Tensor(a!)` is the argument of that mark."""
    if not declared.is_write:
        return
    for argument, given in _arguments(subject, sample):
        same_alias = argument.is_write and argument.alias.before == declared.alias.before
        if same_alias and value is not given:
            raise AssertionError(f"{which} is declared as argument '{argument.name}' itself, returned another tensor")


def _arguments(subject, sample):
    """(declared, given) of the arguments that the sample gives."""
    places = [a for a in subject.op.schema.args if not a.kwarg_only]
    by_name = {a.name: a for a in subject.op.schema.args}
    return [*zip(places, sample.args), *((by_name[k], v) for k, v in sample.kwargs.items() if k in by_name)]


# ---- writes --------------------------------------------------------------------------------------------------------


@check(OP_CHECKS, "mutation", any_values=True)
def mutation(subject, sample, dtype):
    """Arguments not declared as written to, with (a!), stay as they are; those declared count a version."""
    before = [(a, given, _frozen(given)) for a, given in _arguments(subject, sample)]
    raised = None
    try:
        _call(subject, sample)
    except (Exception, SystemExit) as error:  # what it wrote before counts too
        raised = error
    _compare(before)
    if raised is not None:
        raise raised


def _compare(before):
    """AssertionError when an argument is not what it was, and nothing declares or counts that."""
    for argument, given, (values, versions) in before:
        same = _same(given, values)
        if not argument.is_write:
            if not same:
                raise AssertionError(
                    f"changes its argument '{argument.name}' (from {_short(values)} to {_short(given)}), which the "
                    f"schema does not declare; write {_marked(argument)}, or work on a copy"
                )
            if versions != _versions(given):
                raise AssertionError(
                    f"writes to its argument '{argument.name}' in place (its version is counted), which the schema "
                    f"does not declare; write {_marked(argument)}, or work on a copy"
                )
        else:
            if not same and versions == _versions(given):
                raise AssertionError(
                    f"changes its argument '{argument.name}' without counting its version, so autograd cannot know: "
                    "write with in-place ops of Tensor"
                )


def _marked(argument):
    return f"'{argument.spelling.replace('Tensor', 'Tensor(a!)')} {argument.name}'"


def _frozen(value):
    if isinstance(value, tg.Tensor):
        return copied(value), value._version
    if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
        return list(value) if not _holds(value) else [copied(v) for v in value], _versions(value)
    if isinstance(value, dict):
        return {k: copied(v) if isinstance(v, tg.Tensor) else v for k, v in value.items()}, _versions(value)
    return value, None


def _holds(values):
    return any(isinstance(v, tg.Tensor) for v in values)


def _versions(value):
    if isinstance(value, tg.Tensor):
        return value._version
    if isinstance(value, dict):
        value = list(value.values())
    return [v._version for v in value if isinstance(v, tg.Tensor)] if isinstance(value, (list, tuple)) else None


def _same(now, before):
    if isinstance(before, dict):
        return list(now) == list(before) and all(_same(now[k], before[k]) for k in before)
    if isinstance(before, list):
        return len(now) == len(before) and all(_same(n, b) for n, b in zip(now, before))
    if isinstance(before, tg.Tensor):
        return before.device.type == "meta" or compare.same_bits(now, before)
    return now is before or now == before


def _short(value):
    return value.tolist() if isinstance(value, tg.Tensor) and value.numel() < 9 else getattr(value, "shape", value)


# ---- shared memory -------------------------------------------------------------------------------------------------


@check(OP_CHECKS, "aliasing", any_values=True)
def aliasing(subject, sample, dtype):
    """No result shares memory with an argument or another result unless the schema declares it, with (a)."""
    if subject.op.is_view_op or sweep.tagged(subject.op, "maybe_aliasing_or_mutating"):
        raise NotApplicable("the op is declared to give views")
    inputs = [(a, t) for a, given in _arguments(subject, sample) for t in _tensors(given)]
    result = _call(subject, sample)
    declared = subject.op.schema.returns
    results = [result] if len(declared) == 1 else list(result or ())
    outputs = [(i, r, t) for i, (value, r) in enumerate(zip(results, declared)) for t in _tensors(value)]
    for i, r, t in outputs:
        for argument, given in inputs:
            if _share(t, given) and not _declared(r, argument):
                raise AssertionError(
                    f"{_which(i, declared)} shares memory with its argument '{argument.name}', which the schema does "
                    f"not declare; return a copy, or write 'Tensor(a)' for both"
                )
    for k, (i, r, t) in enumerate(outputs):
        for j, other, u in outputs[:k]:
            both = r.alias is not None and other.alias is not None
            with_what = _which(j, declared) if j != i else "another of its tensors"
            if not both and _share(t, u):
                raise AssertionError(
                    f"{_which(i, declared)} shares memory with {with_what}, which the schema does not declare: copy"
                )


def _which(i, declared):
    return f"result {i}" if len(declared) > 1 else "the result"


def _tensors(value):
    return Case(Sample(value), "").tensors


def _declared(result, argument):
    if result.alias is None or argument.alias is None:
        return result.alias is not None and argument.type == "Any"  # which may hold tensors and takes no mark
    marks = {*result.alias.before, *result.alias.after} & {*argument.alias.before, *argument.alias.after}
    return bool(marks) or "*" in argument.alias.after


def _share(a, b):
    if a is b:
        return True
    if a.device.type == "meta" or b.device.type == "meta" or not a.numel() or not b.numel():
        return False
    a, b = a.untyped_storage(), b.untyped_storage()
    return a.data_ptr() < b.data_ptr() + b.nbytes() and b.data_ptr() < a.data_ptr() + a.nbytes()


# ---- without data --------------------------------------------------------------------------------------------------


@check(OP_CHECKS, "shape", any_values=True)
def shape(subject, sample, dtype):
    """On meta tensors, which have no data, it gives the shapes and dtypes of the real result."""
    if sweep.tagged(subject.op, "data_dependent"):
        raise NotApplicable("the shape depends on the data, say its tags")
    sweep.shape_rule_agrees(subject.op, sample, dtype)
