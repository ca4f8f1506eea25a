"""A handler may do anything: raise, recurse, answer nonsense, delete itself. The engine stays usable, the error clear.

Where a crash of the interpreter is thinkable the code runs in a process of its own.
"""

import subprocess
import sys
import textwrap

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext import Tensor
from tinygrad_ext.overrides import TorchFunctionMode, _get_current_function_mode_stack, redispatch_function


def duck(handler):
    """An instance of a type with this handler."""
    return type("Duck", (), {"__torch_function__": handler})()


def usable():
    """The engine computes, differentiates and asks nobody."""
    x = tg.ones(3, requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert _get_current_function_mode_stack() == []
    assert tg.add(duck(lambda self, *call: "asked"), 1) == "asked"


@pytest.fixture(autouse=True)
def still_usable():
    yield
    usable()


def alone(code):
    """Run code in a process of its own; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", "import tinygrad_ext as tg\n" + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-1500:]}"
    return done.stdout.strip()


# ---- raising


@pytest.mark.parametrize("error", [ValueError, TypeError, KeyboardInterrupt, SystemExit, StopIteration])
def test_what_a_handler_raises_arrives_as_it_is(error):
    def handler(self, func, types, args, kwargs):
        raise error("from the handler")

    d = duck(handler)
    for call in (lambda: tg.add(d, 1), lambda: tg.ones(2) + d, lambda: tg.ones(2)[d], lambda: tg.cat([d])):
        with pytest.raises(error, match="from the handler"):
            call()


def test_a_mode_that_raises_is_left():
    class Fails(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise LookupError("from the mode")

    t = tg.ones(2)
    for call in (lambda: tg.ones(2), lambda: tg.add(t, 2), lambda: len(t), lambda: t.shape):
        with pytest.raises(LookupError), Fails():
            call()
        assert _get_current_function_mode_stack() == []


# ---- recursion


@pytest.mark.parametrize(
    "call",
    [
        "tg.add(D(), 1)",
        "tg.ones(2) + D()",
        "tg.ones(2)[D()]",
        "tg.cat([D()])",
        "tg.Tensor.shape.__get__(D())",
        "tg.Tensor.dim(D())",
        "tg.numel(D())",
        "Cube.apply(D())",
    ],
)
def test_a_handler_that_calls_the_same_function_again_is_a_recursion_error(call):
    out = alone(f"""
        class D:
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **kwargs)
        class Cube(tg.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x
        try:
            {call}
        except RecursionError as e:
            print("RecursionError")
        assert (tg.ones(2) + 1).tolist() == [2, 2]
    """)
    assert out == "RecursionError"


def test_a_subclass_that_calls_without_disabling_is_a_recursion_error():
    out = alone("""
        class S(tg.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))
        s = tg.ones(2).as_subclass(S)
        for call in (lambda: s + s, lambda: s.shape, lambda: len(s), lambda: repr(s), lambda: s[0], lambda: bool(s),
                     lambda: setattr(s, "grad", None)):
            try:
                call()
            except RecursionError:
                print("R", end="")
    """)
    assert out == "R" * 7


def test_a_handler_without_a_python_frame_recurses_safely():
    out = alone("""
        import functools, operator, sys
        sys.setrecursionlimit(3000)
        class D: pass
        d = D()
        D.__torch_function__ = staticmethod(lambda *a: tg.add(d, 1))
        class E: pass
        e = E()
        E.__torch_function__ = staticmethod(functools.partial(tg.add, e, 1))
        for x in (d, e):
            try:
                tg.add(x, 1)
            except (RecursionError, TypeError) as error:
                print(type(error).__name__)
    """)
    assert out.splitlines()[0] == "RecursionError"


def test_a_mode_that_enters_itself_in_its_handler_recurses_safely():
    out = alone("""
        from tinygrad_ext.overrides import TorchFunctionMode
        class M(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                with self:
                    return func(*args, **(kwargs or {}))
        try:
            with M():
                tg.ones(2)
        except RecursionError:
            print("RecursionError")
        assert tg.ones(2).tolist() == [1, 1]
    """)
    assert out == "RecursionError"


# ---- nonsense


class Garbage(Tensor):
    """Answers the same nonsense to everything."""

    answer = object()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls.answer


def garbage():
    return tg.ones(2)._make_subclass(Garbage, tg.ones(2))


def test_garbage_is_returned_by_functions_methods_and_attributes():
    g = garbage()
    for answer in (tg.add(g, 1), g + 1, g.exp(), g.shape, g[0], g.numel(), -g, g == g):
        assert answer is Garbage.answer


@pytest.mark.parametrize("convert", [len, bool, float, int, complex, repr, str, "{:x}".format, tuple])
def test_garbage_where_python_wants_a_type_is_a_type_error(convert):
    with pytest.raises(TypeError):
        convert(garbage())


class Answer(TorchFunctionMode):
    def __init__(self, answer):
        self.answer = answer

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return self.answer


@pytest.mark.parametrize("convert", [len, bool, float, int, repr])
@pytest.mark.parametrize("answer", [None, "text", -1, 2**70, object()], ids=["none", "str", "-1", "large", "object"])
def test_garbage_of_a_mode_is_checked_like_that_of_a_method(convert, answer):
    class Plain:
        pass

    for name in ("__len__", "__bool__", "__float__", "__int__", "__repr__"):
        setattr(Plain, name, lambda self: answer)
    t, expected = tg.ones(2), None
    try:
        expected = convert(Plain())
    except (TypeError, ValueError, OverflowError) as refusal:
        with pytest.raises(type(refusal)), Answer(answer):
            convert(t)
        return
    with Answer(answer):
        got = convert(t)
    assert got == expected


def test_backward_of_garbage_is_refused():
    x = tg.ones(2, requires_grad=True)
    with pytest.raises((TypeError, RuntimeError, AttributeError)):
        tg.autograd.backward([(x * 2).sum(), object()])
    assert tg.autograd.grad(garbage(), x) is Garbage.answer


def test_a_handler_that_is_no_callable_is_a_type_error():
    with pytest.raises(TypeError, match="not callable"):
        tg.add(duck(3), 1)


# ---- taking things away


def test_a_handler_that_deletes_itself_has_answered_once():
    class D:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            del D.__torch_function__
            return "once"

    d = D()
    assert tg.add(d, 1) == "once"
    with pytest.raises(TypeError, match="D"):
        tg.add(d, 1)


def test_a_handler_may_delete_its_own_object_and_the_list_it_came_in():

    items = []

    class D:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            items.clear()
            collect()
            return "alive", len(args[0])

    items += [D(), tg.ones(2)]
    assert tg.cat(items) == ("alive", 0)


def test_what_one_handler_does_to_kwargs_and_lists_the_next_one_does_not_inherit():
    seen = []

    class First:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs["alpha"] = 7
            kwargs["junk"] = 1
            return NotImplemented

    class Second:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(dict(kwargs))
            return "second"

    assert tg.add(First(), Second(), alpha=2) == "second"
    assert seen == [{"alpha": 2}]


def test_a_handler_that_empties_a_list_and_declines_gets_the_usual_error():
    class D:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            args[0].clear()
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation"):
        tg.cat([D(), tg.ones(2)])


def test_a_mode_that_empties_a_list_sees_the_ops_own_refusal():
    class Clear(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            args[0].clear()
            return func(*args, **(kwargs or {}))

    items = [tg.ones(2), tg.ones(2)]
    with pytest.raises((RuntimeError, TypeError, ValueError)), Clear():
        tg.cat(items)


def test_a_mode_that_leaves_the_stack_in_disorder_does_not_leak():
    class Leaks(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            Leaks().__enter__()
            return func(*args, **(kwargs or {})) if len(_get_current_function_mode_stack()) > 3 else "left open"

    with Leaks():
        assert tg.ones(2) == "left open"
        assert len(_get_current_function_mode_stack()) == 1


def test_a_mode_taken_off_twice_says_so():
    mode = Answer(1)
    with pytest.raises(RuntimeError, match="not active in this thread"), mode:
        mode.__exit__()
    with pytest.raises(RuntimeError, match="no mode to leave"):
        from tinygrad_ext.overrides import _pop_mode

        _pop_mode()


def test_a_mode_left_in_another_thread_is_refused_there():
    import threading

    mode, refusals = Answer(1), []

    def leave():
        try:
            mode.__exit__()
        except RuntimeError as refusal:
            refusals.append(str(refusal))

    with mode:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
    assert "not active in this thread" in refusals[0]


def test_redispatching_something_else_does_not_skip_a_later_call():
    calls = []

    class S(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    s = tg.ones(2).as_subclass(S)
    redispatch_function(print, (), (), {"end": ""})
    with pytest.raises(ZeroDivisionError):
        redispatch_function(lambda: 1 / 0, (), ())
    s.exp()
    assert calls == [Tensor.exp]
