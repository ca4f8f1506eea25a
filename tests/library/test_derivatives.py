"""register_autograd: gradients of any order, lists, ops that write, and what is refused when."""

import gc
import weakref

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import library
from tinygrad_ext.autograd import grad, gradcheck, gradgradcheck


def op_of(text, fn, mutates=(), name="t::f"):
    return library.custom_op(name, fn, mutates_args=mutates, schema=text)


def double(*shape):
    return tg.randn(*shape, dtype=tg.float64, requires_grad=True)


def make_mul():
    """x * y + 0 * k, with a derivative for x and y."""
    f = op_of("(Tensor x, Tensor y, int k=3) -> Tensor", lambda x, y, k: tg.from_numpy(x.numpy() * y.numpy()))

    def setup_context(ctx, inputs, output):
        x, y, ctx.k = inputs
        ctx.save_for_backward(x, y)

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y if ctx.needs_input_grad[0] else None), g * x, None

    f.register_autograd(backward, setup_context=setup_context)
    return f


def test_derivatives_of_first_and_second_order():
    f = make_mul()
    assert gradcheck(f, (double(3), double(3))) and gradgradcheck(f, (double(3), double(3)))
    assert gradgradcheck(lambda x: f(x, x), (double(3),))


def test_the_node_is_named_after_the_op():
    y = make_mul()(double(1), double(1))
    assert y.grad_fn.name() == "FBackward0" and y.requires_grad


def test_nothing_is_recorded_where_no_gradient_is_wanted():
    f = make_mul()
    assert f(tg.ones(2), tg.ones(2)).grad_fn is None
    with tg.no_grad():
        assert f(double(2), double(2)).grad_fn is None
    with tg.inference_mode():
        assert f(double(2), double(2)).is_inference()


def test_without_a_backward_the_graph_says_what_is_missing():
    f = op_of("(Tensor x) -> Tensor", lambda x: x * 2)
    y = f(double(2)).sum()
    with pytest.raises(RuntimeError, match="Trying to backward through t::f but no autograd formula was registered"):
        y.backward()


def test_a_backward_can_come_later_and_only_once():
    f = op_of("(Tensor x) -> Tensor", lambda x: x * 2)
    x = double(2)
    library.register_autograd("t::f", lambda ctx, g: g * 2)
    f(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match=r"there is a backward already, from .*py:\d+; .* brings another"):
        f.register_autograd(lambda ctx, g: g)


@pytest.mark.parametrize("setup", [lambda ctx, inputs, result: None, lambda ctx, x: None, lambda ctx: None])
def test_parameters_of_setup_context_have_their_names(setup):
    f = op_of("(Tensor x) -> Tensor", lambda x: x * 2)
    with pytest.raises(TypeError, match=r"t::f: setup_context takes \(ctx.*must be called \(ctx, inputs, output\)"):
        f.register_autograd(lambda ctx, g: g, setup_context=setup)


def test_keyword_only_arguments_reach_setup_context():
    f = op_of("(Tensor x, *, float k, bool b=False) -> Tensor", lambda x, *, k, b: x * k)
    with pytest.raises(
        TypeError, match=r"\(ctx, inputs, keyword_only_inputs, output\) because the op has keyword-only"
    ):
        f.register_autograd(lambda ctx, g: g, setup_context=lambda ctx, inputs, output: None)
    seen = []

    def setup_context(output, keyword_only_inputs, ctx, inputs):  # any order will do
        ctx.k = keyword_only_inputs["k"]
        seen.append((inputs, keyword_only_inputs))

    f.register_autograd(lambda ctx, g: g * ctx.k, setup_context=setup_context)
    x = double(2)
    f(x, k=4).sum().backward()
    assert x.grad.tolist() == [4, 4] and seen == [((x,), {"k": 4.0, "b": False})]


def test_keyword_only_tensors_have_no_gradient():
    f = op_of("(Tensor x, *, Tensor y) -> Tensor", lambda x, *, y: x * y)
    with pytest.raises(NotImplementedError, match="keyword-only tensors y; gradients go to positional"):
        f.register_autograd(lambda ctx, g: g)


def test_gradients_may_be_given_by_name():
    f = op_of("(Tensor x, int k, Tensor y) -> Tensor", lambda x, k, y: x * k + y)
    f.register_autograd(lambda ctx, g: {"x": g * 3, "y": g})
    x, y = double(2), double(2)
    f(x, 3, y).sum().backward()
    assert x.grad.tolist() == [3, 3] and y.grad.tolist() == [1, 1]


@pytest.mark.parametrize(
    "result, message",
    [
        ((1, 2, 3), r"incorrect number of gradients \(expected 2, got 3\).*argument 'x'"),
        ((), r"expected 2, got 0\).*argument 'x': missing"),
        ((None, 3.0), "gradient different than None at position 2"),
        ((3.0, None), r"expected Variable or None \(got float\) as gradient of argument 'x'"),
        ({"z": None}, "returned a gradient for 'z', which is no argument"),
    ],
)
def test_wrong_gradients_name_the_argument(result, message):
    f = op_of("(Tensor x, int k) -> Tensor", lambda x, k: x * k)
    f.register_autograd(lambda ctx, g: result)
    with pytest.raises(RuntimeError, match=message):
        f(double(2), 3).sum().backward()


def test_several_outputs_and_those_without_gradient():
    f = op_of("(Tensor x) -> (Tensor, int, Tensor, Tensor)", lambda x: (x * 2, 7, x * 3, x.long()))
    got = []

    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[2])

    def backward(ctx, *grads):
        got[:] = grads
        return grads[0] * 2

    f.register_autograd(backward, setup_context=setup_context)
    x = double(2)
    y, n, plain, whole = f(x)
    assert n == 7 and y.requires_grad and not plain.requires_grad and not whole.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2] and got[1] is None and got[2].tolist() == [0, 0]


def test_an_unused_output_gets_zeros_or_none():
    f = op_of("(Tensor x) -> (Tensor, Tensor)", lambda x: (x * 2, x * 3))
    got = []
    f.register_autograd(
        lambda ctx, *g: got.append(g) or g[0],
        setup_context=lambda ctx, inputs, output: ctx.set_materialize_grads(len(got) == 0),
    )
    for expected in (tg.zeros(2, dtype=tg.float64), None):
        f(double(2))[0].sum().backward()
        assert got[-1][1] is expected or got[-1][1].equal(expected)


def test_saved_outputs_make_no_circle():
    f = op_of("(Tensor x) -> Tensor", lambda x: x.exp())

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.kept = output

    f.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0], setup_context=setup_context)
    assert gradcheck(f, (double(2),)) and gradgradcheck(f, (double(2),))
    gc.disable()
    try:
        y = f(double(2))
        alive = weakref.ref(y)
        del y
        assert alive() is None
    finally:
        gc.enable()


def test_lists_of_tensors_take_and_give_lists_of_gradients():
    f = op_of("(Tensor[] xs, float k, Tensor y) -> Tensor[]", lambda xs, k, y: [x * k * y for x in xs])
    seen = []

    def setup_context(ctx, inputs, output):
        xs, ctx.k, y = inputs
        ctx.save_for_backward(y, *xs)
        seen.append((len(xs), len(output)))

    def backward(ctx, grads):
        y, *xs = ctx.saved_tensors
        seen.append(ctx.needs_input_grad)
        return [g * ctx.k * y for g in grads], None, sum(g * ctx.k * x for g, x in zip(grads, xs, strict=True))

    f.register_autograd(backward, setup_context=setup_context)
    xs, y = [double(2), tg.ones(2, dtype=tg.float64), double(2)], double(2)
    sum(t.sum() for t in f(xs, 3, y)).backward()
    assert xs[0].grad.allclose(3 * y) and xs[1].grad is None and y.grad.allclose(3 * sum(xs))
    assert seen == [(3, 3), ([True, False, True], False, True)]
    assert gradcheck(lambda a, b, y: f([a, b], 2, y)[1], (double(2), double(2), double(2)))


@pytest.mark.parametrize(
    "result, message",
    [
        ((None,), r"expected 2, got 1\): one for each of xs, k"),
        (
            ([None], None),
            "'xs' is a list of 2 tensors, so its gradient must be a list of 2 .* or None, not list of 1",
        ),
        ((3, None), "must be a list of 2 tensors or None, not int"),
        ({"z": None}, "a gradient for 'z', which is no positional argument"),
    ],
)
def test_wrong_lists_of_gradients(result, message):
    f = op_of("(Tensor[] xs, int k) -> Tensor", lambda xs, k: xs[0] + xs[1])
    f.register_autograd(lambda ctx, g: result)
    with pytest.raises(RuntimeError, match=message):
        f([double(2), double(2)], 3).sum().backward()


def test_an_optional_tensor_may_be_left_out():
    f = op_of("(Tensor x, Tensor? y=None) -> Tensor", lambda x, y: x * 2 if y is None else x * y)
    f.register_autograd(lambda ctx, g: (g * 2, None))
    x = double(2)
    f(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_no_argument_hides_a_gradient():
    f = op_of("(Tensor x, Dict(str, Tensor) more) -> Tensor", lambda x, more: x + more["a"])
    assert f(tg.ones(1), {"a": tg.ones(1)}).item() == 2
    with pytest.raises(TypeError, match=r"argument 'more' \(Dict\(str, Tensor\)\) holds a tensor that requires grad"):
        f(tg.ones(1), {"a": tg.ones(1, requires_grad=True)})
    g = op_of("(Tensor x, Any more) -> Tensor", lambda x, more: x.clone(), name="t::g")
    with pytest.raises(TypeError, match=r"argument 'more' \(Any\) holds .* Declare it as Tensor"):
        g(tg.ones(1), [tg.ones(1, requires_grad=True)])
    with tg.no_grad():
        g(tg.ones(1), tg.ones(1, requires_grad=True))


def test_arguments_that_are_written_to_may_be_left_out_or_lists():
    def write(xs, y):
        for x in xs:
            x.mul_(2)
        if y is not None:
            y.mul_(3)

    f = op_of("(Tensor(a!)[] xs, Tensor(b!)? y=None) -> ()", write, ("xs", "y"))
    f.register_autograd(lambda ctx, gxs, gy: ([2 * g for g in gxs], None if gy is None else 3 * gy))

    def run(a, b, y):
        xs, y = [a.clone(), b.clone()], y.clone()
        f(xs)
        f(xs, y)
        return *xs, y

    assert gradcheck(run, (double(2), double(2), double(2)))


def test_a_kernel_may_return_a_tensor_with_a_history():
    constant = double(2)
    f = op_of("(Tensor x) -> Tensor", lambda x: constant)
    f.register_autograd(lambda ctx, g: g * 5)
    x = double(2)
    y = f(x)
    assert y is not constant
    y.sum().backward()
    assert x.grad.tolist() == [5, 5] and constant.grad is None


def test_in_a_forward_of_a_function_the_result_counts_as_derived():
    f = make_mul()

    class Through(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            inner = f(x, x)
            ctx.save_for_backward(inner)
            return inner + 0

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = double(2)
    (first,) = grad(Through.apply(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="was made inside forward"):
        first.sum().backward()


# ---- records -------------------------------------------------------------------------------------------------------


def test_a_record_with_rules_has_a_derivative_already():
    from tinygrad_ext.registry import scope
    from tinygrad_ext.registry.op_registrar import OpRegistrar

    register = OpRegistrar(scope.current())
    register("t::ruled(Tensor self) -> Tensor", kernel=lambda self: self * 2, grad={"self": lambda grad: grad * 2})
    register.finish()
    with pytest.raises(RuntimeError, match="the op's record has derivative rules"):
        library.register_autograd("t::ruled", lambda ctx, g: g)
    assert gradcheck(tg.ops.t.ruled, (double(2),))


def test_a_record_without_rules_can_get_a_backward():
    from tinygrad_ext.registry import scope
    from tinygrad_ext.registry.op_registrar import OpRegistrar

    register = OpRegistrar(scope.current())
    register(
        "t::plain(Tensor self) -> Tensor",
        kernel=lambda self: self * 2,
        variants="function method inplace",
    )
    register.finish()
    library.register_autograd("t::plain", lambda ctx, g: g * 2)
    assert gradcheck(tg.ops.t.plain, (double(2),)) and gradcheck(lambda x: x.clone().plain_(), (double(2),))


def test_no_derivative_for_a_composite():
    with library.Library("t", "FRAGMENT") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x + x)
        assert gradcheck(tg.ops.t.twice, (double(2),))
        with pytest.raises(RuntimeError, match="its derivative is theirs, but it has a backward too"):
            library.register_autograd("t::twice", lambda ctx, g: g)


def test_numpy_inside_a_kernel_reads_tensors_that_require_grad():
    f = op_of("(Tensor x) -> Tensor", lambda x: tg.from_numpy(np.asarray(x) * 2))
    assert f(double(2)).requires_grad


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    "returned",
    [
        lambda grads: grads,
        lambda grads: tuple(grads),
        lambda grads: (grads,),
        lambda grads: [grads],
        lambda grads: (tuple(grads),),
    ],
)
def test_the_backward_of_an_op_with_one_list_may_return_the_bare_list(count, returned):
    @library.custom_op("bare::double", mutates_args=())
    def double(xs: list[tg.Tensor]) -> list[tg.Tensor]:
        return [x * 2 for x in xs]

    double.register_autograd(lambda ctx, grads: returned([g * 2 for g in grads]))
    xs = [tg.ones(2, requires_grad=True) for _ in range(count)]
    sum(y.sum() * (i + 1) for i, y in enumerate(double(xs))).backward()
    assert [x.grad.tolist() for x in xs] == [[2.0 * (i + 1)] * 2 for i in range(count)]


def test_a_bare_list_of_the_wrong_length_is_refused():
    @library.custom_op("bare::triple", mutates_args=())
    def triple(xs: list[tg.Tensor]) -> list[tg.Tensor]:
        return [x * 3 for x in xs]

    triple.register_autograd(lambda ctx, grads: [grads[0]])
    with pytest.raises(RuntimeError, match="'xs' is a list of 2 tensors"):
        sum(y.sum() for y in triple([tg.ones(2, requires_grad=True) for _ in range(2)])).backward()
