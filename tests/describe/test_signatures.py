"""`inspect.signature`, `help` and `__doc__` of every op's functions and methods tell all ways to call them."""

import inspect
import pydoc

import pytest
from tinygrad_ext.core.call.callables import OpMethod

import tinygrad_ext as tg
from tinygrad_ext import registry

CALLABLES = {**registry.functions, **{f"Tensor.{name}": method for name, method in registry.methods.items()}}


def parameters(f, overload):
    """(names given by position, those of them that must be given, the rest) of one overload; None for varargs."""
    args = overload.schema.args
    if "varargs" in (overload.record.tags or ""):
        return None
    positional = [a for a in args if not a.kwarg_only]
    return positional, [a for a in positional if not a.has_default], [a for a in args if a.kwarg_only]


def spelt(f, arg):
    """How a caller names an argument, where Python can spell it."""
    return "input" if arg.name == "self" and not isinstance(f, OpMethod) else arg.name


@pytest.mark.parametrize("path", CALLABLES)
def test_one_signature_takes_every_call_of_every_overload(path):
    f = CALLABLES[path]
    signature = inspect.signature(f)
    for overload in f.candidates:
        found = parameters(f, overload)
        if found is None:
            continue
        positional, required, keywords = found
        named = {a.name: a for a in keywords if not a.has_default}
        signature.bind(*positional, **named)
        signature.bind(*required, **named)
        try:
            signature.bind(**{spelt(f, a): a for a in [*positional, *keywords]})
        except TypeError:
            # words of Python (random_(from, to)) cannot be spelt, and `*tensors` takes no name
            kinds = {p.kind for p in signature.parameters.values()}
            assert inspect.Parameter.VAR_POSITIONAL in kinds or any(a.name in ("from", "lambda") for a in positional)


@pytest.mark.parametrize("path", CALLABLES)
def test_the_docstring_begins_with_a_line_for_each_overload(path):
    f = CALLABLES[path]
    lines = f.__doc__.partition("\n\n")[0].splitlines()
    for line in lines:
        assert line.startswith(f"{f.name}(") and ") -> " in line, line
    for overload in f.candidates:
        names = [spelt(f, a) for a in overload.schema.args[isinstance(f, OpMethod) :]]
        assert any(all(name in line for name in names) for line in lines), (names, lines)
    assert f.__text_signature__.startswith("(")


def test_a_function_with_several_overloads_lists_them():
    assert str(inspect.signature(tg.max)) == "(input, dim=..., keepdim=False, other=..., *, out=None)"
    lines = tg.max.__doc__.splitlines()
    assert {line.partition(", *")[0].partition(")")[0] for line in lines[:3]} == {
        "max(input",
        "max(input, other",
        "max(input, dim, keepdim=False",
    }
    assert "-> (Tensor values, Tensor indices)" in tg.max.__doc__
    assert any(line.startswith("max(input, other): The largest of two elements") for line in lines)


def test_help_shows_signature_and_doc():
    assert "exp(input, *, out=None) -> Tensor" in pydoc.plain(pydoc.render_doc(tg.exp))
    text = pydoc.plain(pydoc.render_doc(tg.Tensor.sum))
    assert "sum(self, dim=..., keepdim=False, *, dtype=None)" in text
    assert "sum(*, dtype=None) -> Tensor\n" in text and "sum(dim, keepdim=False, *, dtype=None) -> Tensor" in text


def test_lists_that_may_be_given_one_by_one_are_shown_both_ways():
    lines = tg.zeros.__doc__.splitlines()
    assert lines[0].startswith("zeros(size, *,") and lines[1].startswith("zeros(*size, ")
    assert str(inspect.signature(tg.einsum)) == "(equation, *operands, path=None)"
    assert str(inspect.signature(tg.meshgrid)) == "(*tensors, indexing=None)"


def test_bound_methods_leave_self_out():
    x = tg.ones(2)
    assert "self" not in inspect.signature(x.sum).parameters
    assert x.add_.__doc__.startswith("add_(other, *, alpha=1) -> Tensor")
    assert tg.Tensor.sum.__text_signature__.startswith("($self, dim=...")


def test_overloads_and_packets_of_a_namespace_have_docs_of_their_own():
    assert tg.ops.aten.max.__doc__.startswith("max(input")
    only = tg.ops.aten.max.dim
    assert str(inspect.signature(only)).startswith("(input, dim, keepdim=False")
    assert only.__doc__.startswith("max(input, dim, keepdim=False") and "max(input, other" not in only.__doc__


def test_public_functions_that_are_no_ops_have_signatures_too():
    for name in (
        "as_tensor",
        "from_numpy",
        "save",
        "load",
        "manual_seed",
        "set_printoptions",
        "is_tensor",
        "result_type",
    ):
        assert inspect.signature(getattr(tg, name)).parameters, name
    for name in ("backward", "register_hook", "requires_grad_", "numpy", "item", "tolist", "size", "to"):
        method = getattr(tg.Tensor, name)
        inspect.signature(method)
        assert method.__doc__, name
