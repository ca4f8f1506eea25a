"""Refusals keep the words that programs look for, and what used to be refused for no reason is taken."""

import copy
import io
import warnings
from typing import Any

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


@pytest.mark.parametrize(
    "body, words",
    [
        ("break", "SyntaxError"),
        ("a, b += x", "augmented assignment can only have one LHS expression"),
        ("a, *b, *c = x", "Only one starred expression is allowed on the lhs"),
        ("a, *1 = x", "Cannot pack a tuple into a non-variable"),
        ("x + 1 = x", "unexpected expression"),
        ("print('", "expected a valid token"),
        ("return [x x]", r"expected \]"),
    ],
)
def test_a_text_that_cannot_be_read_is_told_by_its_rule(body, words):
    with pytest.raises(jit.Error, match=words):
        jit.CompilationUnit(f"def f(x):\n    {body}")


@pytest.mark.parametrize(
    "annotation, words",
    [
        ("Tuple[3 + 4, Tensor]", r"Expression of type \+ cannot be used in a type expression"),
        ("Tuple[int, int][int]", "Subscripted type must be a type identifier"),
        ("Tensor[int]", "Unknown type constructor Tensor"),
        ("BroadcastingListx[int]", "must be a positive integer"),
    ],
)
def test_an_annotation_that_is_no_type(annotation, words):
    with pytest.raises(jit.Error, match=words):
        jit.CompilationUnit(f"def f(x: {annotation}):\n    return x")


def test_a_comment_with_a_type_begins_as_told():
    with pytest.raises(jit.Error, match="annotation prefix in line"):
        jit.CompilationUnit("def f(x):\n    #type: (int) -> int\n    return x")


@pytest.mark.parametrize(
    "body, words",
    [
        ("return [4].index(5)", "'5' is not in list"),
        ("return '%c' % 'ab'", "%c requires an int or char for formatting, but got String"),
        ("return [1, 2][::0]", "should have non-zero step"),
        ("for row in x: pass", "of a 0-d tensor"),
    ],
)
def test_what_fails_when_it_runs(body, words):
    program = jit.CompilationUnit(f"def f(x, n: int):\n    {body}")
    with pytest.raises(RuntimeError, match=words):
        program.f(tg.tensor(1.0), 1)


@pytest.mark.parametrize(
    "body, words",
    [
        ("for i in range(0.5): pass", "found float"),
        ("return jit._unwrap_optional(None)", "could not be inferred from actual type None"),
        ("return x.__getitem__()", "expected exactly 1 argument"),
    ],
)
def test_what_does_not_type(body, words):
    with pytest.raises(jit.Error, match=words):
        jit.CompilationUnit(f"def f(x):\n    {body}")


class TwoForExit:
    def __init__(self):
        self.n = 0

    def __enter__(self):
        pass

    def __exit__(self, type: Any, value: Any):
        pass


def test_what_leaves_a_with_takes_what_was_raised():
    def f(x, manager: TwoForExit):
        with manager:
            return x

    with pytest.raises(jit.Error, match="__exit__ must have four arguments"):
        jit.script(f)


def test_an_error_in_a_callee_names_each_function_on_the_way():
    def inner(x):
        return nobody_knows  # noqa: F821

    def outer(x):
        return inner(x)

    with pytest.raises(jit.Error, match="'inner' is being compiled since it was called from 'outer'"):
        jit.script(outer)


class Outer(nn.Module):
    def forward(self, x: str):
        return x


@pytest.mark.parametrize(
    "hook, words",
    [
        ("(self, input: Tuple[str, str], output: str)", "wrong number of contained types"),
        ("(self, input: str, output: str)", "input argument to be typed as a Tuple but found type: 'str'"),
        ("(self, input: Tuple[None], output: str)", "wrong inner types for the input tuple argument"),
        ("(self, input: Tuple[str], output: Tuple[str])", "wrong type for the output argument"),
        ("(self, input: Tuple[str])", "exactly 3 inputs but it had 2 inputs"),
    ],
)
def test_a_hook_is_declared_as_it_is_called(hook, words, tmp_path):
    module = Outer()
    file = tmp_path / "hook.py"
    file.write_text(f"from typing import Tuple\ndef hook{hook}:\n    return None\n")
    space = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    module.register_forward_hook(space["hook"])
    with pytest.raises(RuntimeError, match=words):
        jit.script(module)


def test_an_annotation_may_hold_a_name_of_the_function_around():
    kind = tg.device

    class Holder:
        def __init__(self):
            pass

        def first(self, items: list[kind]) -> kind:
            return items[0]

    def f():
        return Holder().first([tg.device("cpu")])

    assert jit.script(f)() == tg.device("cpu")


@jit._overload
def scaled(x: float, how: str) -> float: ...


@jit._overload
def scaled(x: float, how: float) -> float: ...  # noqa: F811


def scaled(x, how=2.0):  # noqa: F811
    if isinstance(how, str):
        return -x
    return x * how


def test_a_signature_takes_the_defaults_of_the_function():
    def f():
        return scaled(1.5), scaled(1.5, "minus"), scaled(1.5, 4.0)

    assert jit.script(f)() == (3.0, -1.5, 6.0)


class Keeping(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tg.ones(2))
        self.saved = self.loaded = False

    def forward(self, x):
        return x * self.weight

    @jit.export
    def _save_to_state_dict(self, destination: dict[str, tg.Tensor], prefix: str, keep_vars: bool):
        self.saved = True
        destination[prefix + "own"] = self.weight

    @jit.export
    def _load_from_state_dict(
        self,
        state_dict: dict[str, tg.Tensor],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ):
        self.loaded = True


def test_a_module_may_say_by_compiled_methods_what_its_state_is():
    whole = jit.script(nn.Sequential(Keeping()))
    assert list(whole.state_dict()) == ["0.own"] and whole[0].saved
    whole.load_state_dict(whole.state_dict(), strict=False)
    assert whole[0].loaded


class Leaving(nn.Module):
    __jit_ignored_attributes__ = ["left"]
    __jit_unused_properties__ = ["unused"]

    def __init__(self):
        super().__init__()
        self.left, self.layers = 1, [nn.Linear(1, 1)]

    @property
    def unused(self):
        return 1

    def forward(self, x):
        return x


class ReadsLeft(Leaving):
    def forward(self, x):
        return x + self.left


class ReadsLayers(Leaving):
    def forward(self, x):
        return len(self.layers)


@pytest.mark.parametrize(
    "module, words",
    [
        (ReadsLeft, "attribute was ignored during compilation"),
        (ReadsLayers, "Cannot infer concrete type of torch.nn.Module"),
    ],
)
def test_what_a_class_leaves_out_or_script_cannot_hold(module, words):
    with pytest.raises(jit.Error, match=words):
        jit.script(module())


def test_an_unused_property_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute"):
        jit.script(Leaving()).unused


def test_a_warning_tells_the_line_of_the_program():
    @jit.script
    def f(x):
        if bool(x < 2):
            warnings.warn("small", stacklevel=2)
        return x

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f(tg.ones(()))
    assert found[0].filename == __file__


def test_isinstance_outside_of_compiled_code():
    with pytest.raises(RuntimeError, match="must be a type or a tuple of types"):
        jit.isinstance(2, [int])
    with pytest.warns(UserWarning, match="empty container"):
        assert jit.isinstance([], list[int])
    assert jit.isinstance((1, "a"), tuple[int, str])


def test_a_slice_in_a_variable():
    @jit.script
    def f(x, n: int, items: list[int]):
        part = slice(1, n)
        first = slice(2)
        return x[part], items[part], x[first, :1]

    x = tg.arange(12.0).reshape(4, 3)
    for n in (2, 3):
        rows, items, window = f(x, n, [5, 6, 7, 8])
        assert rows.equal(x[1:n]) and items == [5, 6, 7, 8][1:n] and window.equal(x[:2, :1])


def test_a_name_has_the_type_of_the_ways_that_go_on():
    @jit.script
    def f(n: int):
        x: int | None = None
        found = 0
        for i in range(n):
            if i < 3:
                if i < 2:
                    x = None
                    continue
                x = 1
            else:
                x = 1 if x is None else x
            x = x + 1
            found = x + x
        return x, found

    file = io.BytesIO()
    jit.save(f, file)
    file.seek(0)
    loaded = jit.load(file)
    for n, expected in ((0, (None, 0)), (2, (None, 0)), (3, (2, 4)), (5, (4, 8))):
        assert f(n) == expected == loaded(n)


def test_copies_of_what_was_loaded():
    file = io.BytesIO()
    jit.save(jit.script(nn.Linear(2, 2)), file)
    file.seek(0)
    loaded = jit.load(file)
    x = tg.ones(1, 2)
    near, far = copy.copy(loaded), copy.deepcopy(loaded)
    with tg.no_grad():
        loaded.weight.zero_()
    assert near(x).equal(loaded(x)) and not far(x).equal(loaded(x))


def test_lists_are_no_rows_of_a_loop():
    with pytest.raises(jit.Error, match="List of iterables is not supported currently"):
        jit.CompilationUnit("def f(x):\n    for i, j in [2, 3, 4], [5, 6, 7]:\n        x += i\n    return x")
