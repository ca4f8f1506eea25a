"""autograd.Functions and custom ops under vmap: their own rules, generated ones, and none."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import library
from tinygrad_ext.autograd import Function
from tinygrad_ext.autograd import grad as grad_of
from tinygrad_ext.func import grad, jacrev, vmap
from tinygrad_ext.registry import scope


class Generated(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, w, k):
        assert x.dim() == 1
        return x * w**k, x + w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, ctx.k = inputs
        ctx.save_for_backward(x, w)
        ctx.double = x * 2

    @staticmethod
    def backward(ctx, first, second):
        x, w = ctx.saved_tensors
        assert x.dim() == 1 and ctx.double.dim() == 1
        by_w = first * ctx.double / 2 * ctx.k * w ** (ctx.k - 1) + second
        return first * w**ctx.k + second, by_w, None


class Ruled(Function):
    seen = []

    @staticmethod
    def forward(x, w):
        return x * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g * w, (g * x).sum_to_size(w.shape)

    @staticmethod
    def vmap(info, in_dims, x, w):
        Ruled.seen.append((info.batch_size, info.randomness, in_dims))
        return Ruled.apply(x, w).movedim(0, 1), 1


class Plain(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


X, W = tg.rand(4, 3) + 0.5, tg.rand(3) + 0.5


def plain(x, w):
    return (x * w**3 + (x + w).sin()).sum()


def generated(x, w):
    first, second = Generated.apply(x, w, 3)
    return (first + second.sin()).sum()


def test_forward_and_backward_run_under_vmap_where_that_is_asked_for():
    assert tg.allclose(vmap(generated, (0, None))(X, W), vmap(plain, (0, None))(X, W))
    for f in (
        lambda f: vmap(grad(f, (0, 1)), (0, None)),
        lambda f: grad(lambda x, w: vmap(f, (0, None))(x, w).sum(), (0, 1)),
    ):
        for one, other in zip(f(generated)(X, W), f(plain)(X, W)):
            assert tg.allclose(one, other)


def test_a_generated_rule_nests():
    f = lambda f: vmap(vmap(f, (0, None)), (None, 0))(X, tg.stack([W, W + 1]))
    assert tg.allclose(f(generated), f(plain))
    assert tg.allclose(vmap(jacrev(generated), (0, None))(X, W), vmap(jacrev(plain), (0, None))(X, W))


def test_a_rule_gets_the_tensors_behind_and_says_where_the_batch_is():
    Ruled.seen.clear()
    got = vmap(Ruled.apply, (1, None), randomness="same")(X.T, W)
    assert tg.equal(got, X * W) and Ruled.seen == [(4, "same", (0, None))]
    slopes = vmap(grad(lambda x, w: Ruled.apply(x, w).sum(), 1), (0, None))(X, W)
    assert tg.allclose(slopes, X)


def test_what_has_no_rule_is_refused():
    with pytest.raises(RuntimeError, match="vmap over Plain, but it does not have vmap support"):
        vmap(Plain.apply)(X)

    class Both(Ruled):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="has both generate_vmap_rule=True and an overridden vmap"):
        vmap(Both.apply, (0, None))(X, W)

    class Takes(Plain):
        generate_vmap_rule = True

    with pytest.raises(RuntimeError, match="must not take ctx"):
        vmap(Takes.apply)(X)


@pytest.fixture
def twice():
    mark = scope.application.mark()
    calls = []

    @library.custom_op("vmapped::twice", mutates_args=())
    def twice(x: tg.Tensor) -> tg.Tensor:
        calls.append(tuple(x.shape))
        return x * 2

    twice.calls = calls
    yield twice
    scope.application.undo(mark)


def test_a_custom_op_runs_by_its_rule_and_else_sample_by_sample(twice):
    assert tg.equal(vmap(twice)(X), X * 2) and twice.calls == [(3,)] * 4
    twice.calls.clear()
    twice.register_vmap(lambda info, in_dims, x: (twice(x), in_dims[0]))
    assert tg.equal(vmap(twice)(X), X * 2) and twice.calls == [(4, 3)]


@pytest.fixture
def some():
    mark = scope.application.mark()

    @library.custom_op("vmapped::some", mutates_args=())
    def some(x: tg.Tensor) -> list[tg.Tensor]:
        return [x.clone() for _ in range(3 if x[0] < 0.5 else 1)]

    yield some
    scope.application.undo(mark)


def test_as_many_results_for_each_sample(some):
    assert [r.tolist() for r in vmap(some)(tg.zeros(2, 1))] == [[[0.0], [0.0]]] * 3
    with pytest.raises(RuntimeError, match="vmapped::some gives 1 results for one sample and 3 for another"):
        vmap(some)(tg.tensor([[0.0], [1.0]]))


class Nested(Function):
    """Its arguments hold tensors in containers."""

    seen = []

    @staticmethod
    def forward(pair, held, w):
        return pair[0] * w + held["x"], pair[1]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0][0])

    @staticmethod
    def backward(ctx, first, second):
        return None, None, first * ctx.saved_tensors[0]


class NestedByRule(Nested):
    @staticmethod
    def vmap(info, in_dims, pair, held, w):
        Nested.seen.append((in_dims, pair[0].shape))
        return (pair[0] * w + held["x"], (pair[1], [pair[0]])), (0, (0, 0))


class NestedGenerated(Nested):
    generate_vmap_rule = True


def test_a_rule_is_told_where_the_batch_stands_within_containers():
    Nested.seen.clear()
    held = {"x": tg.ones(3)}
    first, (second, [third]) = vmap(lambda x: NestedByRule.apply((x, x * 2), held, 3))(X)
    assert Nested.seen == [(((0, 0), {"x": None}, None), (4, 3))]
    assert tg.equal(first, X * 3 + 1) and tg.equal(second, X * 2) and tg.equal(third, X)
    vmap(lambda x: NestedByRule.apply([tg.ones(3), x], {"x": x}, 3))(X)
    assert Nested.seen[1] == (([None, 0], {"x": 0}, None), (3,))


def test_a_generated_rule_takes_what_containers_hold():
    w = tg.ones(3, requires_grad=True)
    first, second = vmap(lambda x: NestedGenerated.apply((x, x * 2), {"x": x}, w))(X)
    assert tg.equal(first, X * 2) and tg.equal(second, X * 2)
    first.sum().backward()
    assert tg.equal(w.grad, X.sum(0))


@pytest.mark.parametrize("order", [1, -1])
def test_a_gradient_that_all_samples_share_and_one_of_each_are_added(order):
    x = tg.ones(3, requires_grad=True)
    outputs = ((x * 2) * 3, (x * 2) * 5)[::order]
    shared = vmap(lambda g: grad_of(outputs, [x], (g, tg.ones(3)), retain_graph=True)[0])(X)
    assert tg.equal(shared, (X * 6 + 10) if order == 1 else (X * 10 + 6))


@pytest.fixture
def first_of():
    mark = scope.application.mark()

    @library.custom_op("vmapped::first_of", mutates_args=())
    def first_of(xs: list[tg.Tensor], y: tg.Tensor) -> tg.Tensor:
        return xs[0] * y

    yield first_of
    scope.application.undo(mark)


def test_the_rule_of_a_custom_op_sees_the_tensors_of_a_list(first_of):
    seen = []

    @first_of.register_vmap
    def rule(info, in_dims, xs, y):
        seen.append((in_dims, [x.shape for x in xs]))
        return xs[0] * y, 0

    assert tg.equal(vmap(lambda x: first_of([x, tg.ones(2)], tg.ones(3)))(X), X)
    assert seen == [(([0, None], None), [(4, 3), (2,)])]


NUMBERS = {
    "zeros": lambda i: tg.zeros(i, 2),
    "eye": lambda i: tg.eye(i),
    "view": lambda i: tg.ones(4).view(i),
    "dim": lambda i: tg.ones(2, 3).sum(i),
    "narrow": lambda i: tg.ones(9).narrow(0, 0, i),
    "repeat": lambda i: tg.ones(2).repeat(i),
    "roll": lambda i: tg.ones(5).roll(i),
    "topk": lambda i: tg.ones(9).topk(i),
    "expand": lambda i: tg.ones(1).expand(i),
    "slice": lambda i: tg.ones(9)[i:],
    "range": lambda i: list(range(i)),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("values", [[2, 2], [1, 3]])
def test_a_number_of_each_sample_is_no_number_for_all(name, values):
    with pytest.raises(RuntimeError, match="It looks like you're calling"):
        vmap(NUMBERS[name])(tg.tensor(values))


@pytest.mark.parametrize("call", [lambda x: tg.full((2,), x[0]), lambda x: tg.add(x, x, alpha=x[0])])
def test_messages_call_what_a_transform_carries_a_tensor(call):
    for run in (lambda: vmap(call)(tg.rand(3, 4)), lambda: tg.func.jvp(call, (tg.rand(4),), (tg.rand(4),))):
        with pytest.raises(TypeError, match="must be Number, not Tensor"):
            run()


def test_the_rule_of_a_custom_op_gets_keyword_only_arguments_by_their_names():
    mark, seen = scope.application.mark(), []

    @library.custom_op("vmapped::scaled", mutates_args=())
    def scaled(x: tg.Tensor, *, factor: float, shift: float = 1.0) -> tg.Tensor:
        return x * factor + shift

    @scaled.register_vmap
    def rule(info, in_dims, x, *, shift, factor):
        seen.append((in_dims, x.shape, factor, shift))
        return scaled(x, factor=factor, shift=shift), in_dims[0]

    try:
        assert tg.equal(vmap(lambda x: scaled(x, factor=2.0))(X), X * 2 + 1)
    finally:
        scope.application.undo(mark)
    assert seen == [((0,), (4, 3), 2.0, 1.0)]
