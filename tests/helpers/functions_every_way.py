"""Functions of every kind, and programs that call them: CASES, name -> a function of two tensors."""

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function
from tinygrad_ext.autograd.function import once_differentiable

CASES = {}


def case(function):
    CASES[function.__name__] = function


class MarksDirty(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.mark_dirty(x)
        return x.mul_(factor)

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor * 3, None


@case
def an_input_that_is_written_to(x, y):
    a = x * y
    b = MarksDirty.apply(a, 2.0)
    return a + (b if a is b else b * 100) * x


@case
def a_view_that_is_written_to(x, y):
    a = x * y
    MarksDirty.apply(a[0], 2.0)
    return a * y


class Several(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        order = x.argsort(-1)
        sign = (x * y).sign()
        ctx.mark_non_differentiable(order, sign)
        return x * y, None, order, sign, "word", x.shape[0] * 2

    @staticmethod
    def backward(ctx, product, nothing, order, sign, word, size):
        assert nothing is None and word is None and size is None and sign is not None
        x, y = ctx.saved_tensors
        return product * y * 3, product * x


@case
def outputs_of_many_kinds(x, y):
    product, nothing, order, sign, word, size = Several.apply(x, y)
    assert nothing is None and word == "word" and not sign.requires_grad
    return product * sign * size + order


class Unmaterialized(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        inner = x.exp()
        ctx.save_for_backward(y, inner)
        return x * y, x + y, inner * 2

    @staticmethod
    def backward(ctx, product, total, exp):
        y, inner = ctx.saved_tensors
        gx = gy = None
        if product is not None:
            gx, gy = product * y, product * 5
        if total is not None:
            gx = total * 7 if gx is None else gx + total * 7
        if exp is not None:
            gx = exp * inner if gx is None else gx + exp * inner
        return gx, gy


@case
def gradients_that_do_not_arrive(x, y):
    product, _, _ = Unmaterialized.apply(x, y)
    _, total, _ = Unmaterialized.apply(x, y)
    return product * 2 + total


class Sizes(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.count, ctx.scale = x.shape[-1], scale
        return x.sum(-1, keepdim=True) / ctx.count

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(-1, ctx.count) / ctx.count * ctx.scale["by"], None


@case
def sizes_and_objects_kept_on_ctx(x, y):
    return Sizes.apply(x * y, {"by": 3}) * x


class Wanted(Function):
    @staticmethod
    def forward(ctx, x, y, flag=True, *, power=2):
        ctx.power = power
        ctx.save_for_backward(x if ctx.needs_input_grad[1] else None, y)
        return x * y**power if flag else x

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        gx = grad * y**ctx.power if ctx.needs_input_grad[0] else None
        gy = grad * x * ctx.power * y if ctx.needs_input_grad[1] else None
        return gx, gy, None, None


@case
def needs_defaults_and_keywords(x, y):
    return Wanted.apply(x, y, power=2) + Wanted.apply(x.detach(), y) + Wanted.apply(x, y.detach(), True)


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x


@case
def derivatives_of_the_first_order_only(x, y):
    return Once.apply(x) * y


class Reversal(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


class AsItIs(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


@case
def views_and_inputs_returned(x, y):
    return Reversal.apply(x * y) * y + AsItIs.apply(x)


class Named(Function):
    @staticmethod
    def forward(x, *rest):
        return x * sum(rest)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def vjp(ctx, grad):
        x, *rest = ctx.saved_tensors
        return (grad * sum(rest), *[grad * x for _ in rest])


@case
def any_number_of_arguments_and_vjp(x, y):
    return Named.apply(x, y, x, y)


class ByName(Function):
    boxed_grads_call = True

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x - y

    @staticmethod
    def backward(ctx, grads):
        x, y = ctx.saved_tensors
        return {"y": grads[0] * x, "x": grads[0] * y + grads[1]}


@case
def gradients_by_name_and_in_a_list(x, y):
    a, b = ByName.apply(x, y)
    return a * b


class Legacy(Function):
    def __init__(self, factor):
        self.factor = factor

    def twice(self, a):
        return a * self.factor

    def forward(self, x):
        self.save_for_backward(x)
        return self.twice(x * x)

    def backward(self, grad):
        (x,) = self.saved_tensors
        return self.twice(grad * x) * 2


@case
def the_legacy_style(x, y):
    return Legacy(3.0)(x) * y


class Random(Function):
    @staticmethod
    def forward(ctx, x):
        mask = (tg.rand(x.shape) > 0.5).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask * 2


@case
def random_numbers_in_forward(x, y):
    return Random.apply(x) * tg.rand(3) + Random.apply(y)


class InNumPy(Function):
    @staticmethod
    def forward(ctx, x, y, scale):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return tg.from_numpy(np.sin(x.detach().numpy()) * y.detach().numpy()) * scale, tg.from_numpy(np.array([1.5]))

    @staticmethod
    def backward(ctx, grad, _):
        x, y = (t.detach().numpy() for t in ctx.saved_tensors)
        gx = tg.from_numpy(np.cos(x) * y * grad.numpy()) * ctx.scale
        return gx, tg.from_numpy(np.sin(x) * grad.numpy()) * ctx.scale, None


class BackwardInNumPy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return tg.from_numpy(np.cos(x.numpy())) * grad * 2


@case
def what_leaves_the_library(x, y):
    a, _ = InNumPy.apply(x * y, y, 2.0)
    return a * BackwardInNumPy.apply(x)


class Clipped(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.norm = max(1.0, float(x.norm()))
        return x / ctx.norm

    @staticmethod
    def backward(ctx, grad):
        return grad / ctx.norm * 2


@case
def numbers_read_of_elements(x, y):
    return Clipped.apply(x) * y
