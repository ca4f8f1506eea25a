"""What a kernel must keep to: what it returns, what it writes to."""

import pytest
from tinygrad_ext.core.grad.custom import custom_of

import tinygrad_ext as tg
from tinygrad_ext import library


def op_of(text, fn, mutates=()):
    return library.custom_op("t::f", fn, mutates_args=mutates, schema=text)


# ---- what a kernel must keep to ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel", [lambda x: x, lambda x: x.view(-1), lambda x: x[1:], lambda x: tg.from_numpy(x.numpy())]
)
def test_a_return_may_not_share_memory_with_an_argument(kernel):
    f = op_of("(Tensor x) -> Tensor", kernel)
    with pytest.raises(RuntimeError, match=r"must not also be an input.*argument 'x'.*Return a clone"):
        f(tg.ones(3))


def test_returns_may_not_share_memory():
    def twice(xs):
        y = xs[0] + 1
        return y, y

    f = op_of("(Tensor[] xs) -> (Tensor, Tensor)", twice)
    with pytest.raises(RuntimeError, match="two returns share their memory"):
        f([tg.ones(3)])


def test_every_call_is_checked_for_shared_memory():
    f = op_of("(Tensor x, bool bad) -> Tensor", lambda x, bad: x if bad else x.clone())
    for _ in range(20):
        f(tg.ones(1), False)
    with pytest.raises(RuntimeError, match="must not also be an input"):
        f(tg.ones(1), True)


@pytest.mark.parametrize(
    "text, result, message",
    [
        ("(Tensor x) -> Tensor", 3, "the return of the kernel must be Tensor, but it is a int"),
        ("(Tensor x) -> Tensor", None, "but it is None"),
        ("(Tensor x) -> ()", 3, "the op returns nothing"),
        ("(Tensor x) -> (Tensor, int)", 3, "the op returns a tuple of 2"),
        ("(Tensor x) -> (Tensor, int)", (3, 3), "return 0 of the kernel must be Tensor"),
        ("(Tensor x) -> Tensor[]", [3], r"must be Tensor\[\], but it is a int"),
        ("(Tensor x) -> int", "a", "must be int, but it is a str"),
    ],
)
def test_a_kernel_returns_what_the_schema_says(text, result, message):
    with pytest.raises(RuntimeError, match=message):
        op_of(text, lambda x: result)(tg.ones(1))


@pytest.mark.parametrize("text, result", [("int", 3), ("float", 0.5), ("bool", True), ("str", "a"), ("Tensor?", None)])
def test_values_are_returned(text, result):
    assert op_of(f"(Tensor x) -> {text}", lambda x: result)(tg.ones(1)) == result


def test_named_returns_are_a_named_tuple():
    f = op_of("(Tensor x) -> (Tensor values, Tensor indices)", lambda x: (x + 1, x + 2))
    assert f(tg.zeros(1)).indices.item() == 2


def add_one(x):
    x.add_(1)
    return x.clone()


def add_one_behind(x):
    x.numpy()[:] += 1
    return x.clone()


@pytest.mark.parametrize("kernel", [add_one, add_one_behind])
def test_an_undeclared_write_is_found(kernel):
    f = op_of("(Tensor x) -> Tensor", kernel)
    with pytest.raises(
        RuntimeError, match=r"wrote to argument 'x', which the op does not declare.*mutates_args=\('x',\)"
    ):
        f(tg.ones(3))


def test_the_search_for_writes_ends_after_the_first_calls():
    f = op_of("(Tensor x) -> Tensor", lambda x: x.clone())
    before = custom_of(f.candidates[0]).watch
    assert before > 0
    for _ in range(before):
        f(tg.ones(1))
    assert custom_of(f.candidates[0]).watch == 0
    f.register_kernel("cpu", add_one)
    with pytest.raises(RuntimeError, match="wrote to argument 'x'"):
        f(tg.ones(1))


def test_a_view_cannot_come_from_a_kernel():
    with pytest.raises(TypeError, match="a kernel cannot return a view"):
        op_of("(Tensor(a) x) -> Tensor(a)", lambda x: x[0])


# ---- ops that write ------------------------------------------------------------------------------------------------


def test_a_declared_write_counts_as_one():
    def write(x, y):
        x.add_(1).add_(1)
        y.numpy()[:] = 5

    f = op_of("(Tensor(a!) x, Tensor(b!) y) -> ()", write, ("x", "y"))
    x, y = tg.ones(2), tg.ones(2)
    for k in range(1, 20):
        assert f(x, y) is None
        assert (x._version, y._version) == (k, k)
    assert x[0] == 39 and y[0] == 5


def test_a_leaf_that_requires_grad_is_not_written_to():
    f = op_of("(Tensor(a!) x) -> ()", lambda x: x.zero_()[:0].tolist() or None, ("x",))
    x = tg.ones(2, requires_grad=True)
    for target in (x, x[0]):
        with pytest.raises(
            RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"
        ):
            f(target)
    with tg.no_grad():
        f(x)
    assert x.tolist() == [0, 0]


def test_an_op_returns_the_argument_it_writes_to():
    f = op_of("(Tensor(a!) x) -> Tensor(a!)", lambda x: x.add_(1), ("x",))
    x = tg.ones(2)
    assert f(x) is x and x[0] == 2
    g = library.custom_op("t::g", lambda x: x + 1, mutates_args=("x",), schema="(Tensor(a!) x) -> Tensor(a!)")
    with pytest.raises(RuntimeError, match="says that return 0 is argument 'x' itself"):
        g(x)


def test_lists_are_written_to():
    f = op_of("(Tensor(a!)[] xs, Tensor(b!)? y) -> ()", lambda xs, y: [x.add_(1) for x in xs].clear(), ("xs", "y"))
    xs = [tg.zeros(1), tg.zeros(1)]
    f(xs, None)
    assert [x.item() for x in xs] == [1, 1] and xs[1]._version == 1


def test_read_only_memory_is_not_written_to():
    f = op_of("(Tensor(a!) x) -> ()", lambda x: None, ("x",))
    with pytest.warns(UserWarning, match="not writable"):
        x = tg.frombuffer(b"12345678", dtype=tg.float32)
    with pytest.raises(RuntimeError, match="is read-only"):
        f(x)


@pytest.mark.parametrize(
    "change",
    [lambda xs: xs.extend([tg.zeros(2)] * 50), lambda xs: xs.clear(), lambda xs: xs.pop(), lambda xs: xs.reverse()],
    ids=["extend", "clear", "pop", "reverse"],
)
def test_a_kernel_cannot_change_a_list_itself(change):
    """The list is the caller's, and the gradients are laid out by it. PyTorch's kernels too get lists of their own."""

    def write(xs, y):
        for x in xs:
            x.add_(1)
        change(xs)

    def read(xs):
        first = xs[0] * 2
        change(xs)
        return first

    written = library.custom_op("t::write", write, mutates_args=("xs",), schema="(Tensor(a!)[] xs, Tensor y) -> ()")
    written.register_autograd(lambda ctx, grads: (grads, None))
    made = op_of("(Tensor[] xs) -> Tensor", read)
    made.register_autograd(lambda ctx, grad: [[grad * 2, None, None]])
    y = tg.ones(2, requires_grad=True)
    for scale in (y, 1.0):
        xs = [tg.ones(2) * scale for _ in range(3)]
        before = list(xs)
        with pytest.raises(RuntimeError, match="put other tensors into the list 'xs'"):
            written(xs, y)
        assert all(a is b for a, b in zip(xs, before, strict=True))
        assert made(xs).tolist() == [4.0, 4.0] and len(xs) == 3
    made([y, y.detach(), y.detach()]).sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


def test_setup_context_gets_lists_as_lists():
    f = op_of("(Tensor[] xs) -> Tensor", lambda xs: xs[0] + xs[1])
    seen = []
    f.register_autograd(
        lambda ctx, grad: [[grad, grad]], setup_context=lambda ctx, inputs, output: seen.append(type(inputs[0]))
    )
    f((tg.ones(2, requires_grad=True), tg.ones(2)))
    assert seen == [list]
