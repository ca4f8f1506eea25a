"""Tensors that are written to: `out=` of one result and of several, in-place forms; refused whole or written whole."""

import gc
import warnings

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, graph

# pairs and composites, with the result in two tensors
SEVERAL = {
    "max": lambda x, out=None: tg.max(x, 0, out=out),
    "sort": lambda x, out=None: tg.sort(x, 0, out=out),
    "kthvalue": lambda x, out=None: tg.kthvalue(x, 2, 0, out=out),
    "aminmax": lambda x, out=None: tg.aminmax(x, dim=0, out=out),
}
several = pytest.mark.parametrize("call", SEVERAL.values(), ids=SEVERAL)


def operand(dtype=tg.int64):
    return tg.tensor([[3, 1, 2], [1, 5, 2], [2, 4, 9]], dtype=dtype)


def fresh(call, x):
    """Targets that fit, of other values than the results."""
    return tuple(tg.full_like(r, 77) for r in call(x))


def lists(tensors):
    return [t.tolist() for t in tensors]


# ---- several results


@several
def test_several_results_go_into_targets_that_fit(call):
    x = operand()
    out = fresh(call, x)
    addresses = [t.data_ptr() for t in out]
    got = call(x, out=out)
    assert all(g is t for g, t in zip(got, out))
    assert lists(out) == lists(call(x)) and [t.data_ptr() for t in out] == addresses


@several
def test_each_target_counts_a_version_and_remembers_the_line(call):
    x = operand(tg.float64)
    for at in range(2):
        out = fresh(call, x)
        if not out[at].is_floating_point():
            continue
        w = tg.ones(out[at].shape, dtype=out[at].dtype, requires_grad=True)
        product = w * out[at]
        before = [t._version for t in out]
        call(x, out=out)
        assert [t._version for t in out] == [v + 1 for v in before]
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
            product.sum().backward()
        assert str(raised.value).count("test_targets.py:") == 2


@several
def test_a_saved_target_of_several_is_cloned_where_that_is_allowed(call):
    with graph.allow_mutation_on_saved_tensors():
        x = operand(tg.float64)
        out = fresh(call, x)
        w = tg.ones(out[0].shape, dtype=tg.float64, requires_grad=True)
        product = w * out[0]
        call(x, out=out)
        product.sum().backward()
    assert (w.grad == 77).all()


@several
def test_inference_tensors_are_refused_before_anything_is_written(call):
    x = operand()
    for at in range(2):
        out = list(fresh(call, x))
        with tg.inference_mode():
            out[at] = out[at].clone()
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            call(x, out=tuple(out))
        assert all((t == 77).all() for t in out)


@several
def test_a_refused_target_leaves_the_others_alone(call):
    x = operand()
    wrong = [
        lambda t: t.to(tg.bool),
        lambda t: tg.empty(t.shape, dtype=t.dtype, device="meta"),
        lambda t: t[:1].expand(t.shape),
        read_only,
    ]
    for at in range(2):
        for change in wrong:
            out = list(fresh(call, x))
            out[at] = change(out[at])
            with pytest.raises(RuntimeError):
                call(x, out=tuple(out))
            assert (out[1 - at] == 77).all() and out[1 - at]._version == 0


def read_only(t):
    array = t.numpy().copy()
    array.flags.writeable = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # says that it is
        return tg.from_numpy(array)


@several
def test_targets_with_an_element_in_common_are_refused(call):
    x = operand()
    one = tg.full_like(call(x)[0], 77)
    memory = tg.full((one.numel() + 1,), 77)
    shifted = (memory[:-1].view(one.shape), memory[1:].view(one.shape))
    for out in ((one, one), (one, one.detach()), shifted):
        with pytest.raises(RuntimeError, match="tensors given as out refer to a single memory location"):
            call(x, out=out)
        assert (out[0] == 77).all()


@several
def test_targets_side_by_side_in_one_memory_are_filled(call):
    x = operand()
    shape = call(x)[0].shape
    out = tg.full((*shape, 2), 77).unbind(-1)
    assert lists(call(x, out=out)) == lists(call(x))


@pytest.mark.parametrize("at", [0, 1])
def test_an_operand_as_a_target_is_refused_where_pytorch_does(at):
    x = operand()
    out = list(fresh(SEVERAL["kthvalue"], x))
    out[at] = x
    with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input tensor"):
        SEVERAL["kthvalue"](x, out=tuple(out))
    assert lists([x]) == lists([operand()])


@pytest.mark.parametrize("name", [n for n in SEVERAL if n != "kthvalue"])
@pytest.mark.parametrize("at", [0, 1])
def test_an_operand_as_one_of_several_targets(name, at):
    call = SEVERAL[name]
    x = operand()
    expected = lists(call(x))
    out = list(fresh(call, x))
    out[at] = x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(x, out=tuple(out))
    assert lists(out) == expected


@several
def test_a_handler_of_the_warning_changes_no_result(call):
    x = operand()
    expected = lists(call(x))
    out = tg.zeros(7, 1, dtype=tg.int64), tg.zeros(2, 2, 2, dtype=tg.int64)

    def show(*_, **__):
        for t in (x, *out):
            t.data = tg.zeros(1, dtype=tg.int64)
        tg.full((4096,), 7)  # takes the memory that was let go

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        call(x, out=out)
    assert lists(out) == expected


def test_what_several_targets_hold_is_known_to_come_from_the_inputs_of_a_function():
    """As with one target: inside forward autograd sees nothing, and a second derivative must not miss it."""

    def second(fill):
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                kept = fill(x)
                ctx.save_for_backward(kept)
                return x * kept

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

        x = operand(tg.float64).requires_grad_()
        (g,) = tg.autograd.grad(F.apply(x).sum(), x, create_graph=True)
        return outcome(lambda: tg.autograd.grad(g.sum(), x, allow_unused=True))

    one = second(lambda x: tg.amax(x, 0, out=tg.empty(3, dtype=tg.float64)))
    two = second(lambda x: tg.max(x, 0, out=(tg.empty(3, dtype=tg.float64), tg.empty(3, dtype=tg.int64)))[0])
    assert two == one
    assert one[0] is not None


def outcome(call):
    try:
        return None, call()
    except RuntimeError as error:
        return type(error), str(error)


# ---- all forms


FORMS = {
    "pointwise": lambda out: tg.add(tg.ones(3), tg.ones(3), out=out),
    "pair": lambda out: tg.amax(tg.ones(3, 3), 0, out=out),
    "composite": lambda out: tg.nn.functional.normalize(tg.ones(3), dim=0, out=out),
    "several": lambda out: tg.max(tg.ones(3, 3), 0, out=(out, tg.empty(3, dtype=tg.int64))),
    "several, composite": lambda out: tg.aminmax(tg.ones(3, 3), dim=0, out=(tg.empty(3), out)),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_refuse_in_the_same_words(form):
    call = FORMS[form]
    cases = {
        "Expected out tensor to have device cpu, but got meta instead": tg.empty(3, device="meta"),
        "result type Float can't be cast to the desired output type Long"
        if form in ("pointwise", "composite")
        else "Expected out tensor to have dtype float, but got long int instead": tg.empty(3, dtype=tg.int64),
        "more than one element of the written-to tensor refers to a single memory": tg.zeros(1).expand(3),
        "the tensor to write to is read-only": read_only(tg.zeros(3)),
        "out=: the tensor to write to is read-only": read_only(tg.zeros(2)),
    }
    for words, out in cases.items():
        with pytest.raises(RuntimeError, match=words):
            call(out)
    with pytest.warns(UserWarning, match="was resized"):
        call(tg.zeros(2))


def test_a_warning_made_an_error_leaves_the_target_as_it_was():
    for call in FORMS.values():
        out = tg.full((2,), 77.0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="was resized"):
                call(out)
        assert out.tolist() == [77.0, 77.0]


FAILING = {
    "pointwise": lambda t: t.floor_divide_(tg.tensor([1, 1, 0])),
    "pair": lambda t: t.index_fill_(0, tg.tensor([0, 9]), 5),
}


@pytest.mark.parametrize("call", FAILING.values(), ids=FAILING)
def test_a_write_that_fails_on_its_way_counts_where_it_changed_something(call):
    t = tg.tensor([4, 6, 8])
    before = t.tolist()
    with pytest.raises((RuntimeError, IndexError)):
        call(t)
    assert t._version == 1 or t.tolist() == before


# ---- what runs in between


CALLS = {
    "of one dtype": lambda x: x + x,
    "converted": lambda x: x + tg.ones(64, 64, dtype=tg.float64),
    "in place": lambda x: x.add_(x),
    "indexed": lambda x: [x[3] for _ in range(30)][-1],
    "list": lambda x: tg.tensor(x.tolist()),
    "sum": lambda x: x.sum(0),
    "out": lambda x: tg.mul(x, 2, out=tg.empty(0)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_finalizer_that_takes_the_memory_away_is_safe(call):
    """The collector may run whenever something is allocated, so it is let run at each of the first allocations."""
    allowed = {1.0, 2.0, 64.0, 0.0}  # computed from what x was, or from what it is then; never from freed memory
    was = gc.get_threshold()
    gc.freeze()  # collections look at what is made here alone
    try:
        for at in range(1, 40):
            x = tg.ones(64, 64)
            collect()
            gc.disable()
            Bomb(x)
            gc.set_threshold(gc.get_count()[0] + at, 1000, 1000)
            gc.enable()
            try:
                got = call(x)
            except (RuntimeError, IndexError):  # shapes that do not go together any more
                continue
            finally:
                gc.disable()
                gc.set_threshold(*was)
            assert set(got.flatten().tolist()) <= allowed, at
    finally:
        collect()  # the last one must not go off in another test
        gc.set_threshold(*was)
        gc.enable()
        gc.unfreeze()


class Bomb:
    """Garbage that gives a tensor other memory when it is collected, and uses what was let go."""

    def __init__(self, x):
        self.x, self.me, self.taken = x, self, None

    def __del__(self):
        self.x.data = tg.zeros(2, 64)
        self.x.taken = [tg.full((64, 64), 7.0) for _ in range(4)]


def test_the_line_is_that_of_the_last_write_to_memory_that_was_used_before():
    def odd(t):
        t.add_(1)

    def even(t):
        t.add_(1)

    for turn in range(600):
        t = tg.ones(3)
        product = tg.ones(3, requires_grad=True) * t
        (odd if turn % 2 else even)(t)
        with pytest.raises(RuntimeError) as raised:
            product.sum().backward()
        assert f"in {'odd' if turn % 2 else 'even'}" in str(raised.value)


def test_a_target_that_is_only_read_keeps_its_sizes_too():
    """arange and its like give a target other sizes; one that cannot be written to keeps its own."""
    out = read_only(tg.zeros(4, 2))
    for make in (lambda: tg.arange(1, 4, out=out), lambda: tg.linspace(0, 1, 3, out=out)):
        with pytest.raises(RuntimeError, match="out=: the tensor to write to is read-only"):
            make()
        assert out.shape == (4, 2)
