"""Ways to close a circle through a graph that was there before."""

from contextlib import contextmanager

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, grad
from tinygrad_ext.autograd.graph import saved_tensors_hooks


class Sub(tg.Tensor):
    pass


class Double(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@contextmanager
def custom_op():
    """`thrice` is there inside."""
    with tg.library.Library("collection", "FRAGMENT") as library:
        library.define("thrice(Tensor x) -> Tensor")
        library.impl("thrice", lambda x: x * 3, "CPU")
        tg.library.register_autograd("collection::thrice", lambda ctx, g: g * 3, lib=library)
        yield


def thrice(x):
    return tg.ops.collection.thrice(x)


def nothing(*held):
    """A hook's answer that changes no gradient."""


def leaf():
    return tg.ones(4, requires_grad=True)


# Each builds a graph, hangs the newest tensor on something older, and returns it.


def closing(function):
    CLOSED[function.__name__.replace("_", " ")] = function
    return function


CLOSED = {}


@closing
def a_hook_of_a_leaf():
    x = leaf()
    y = (x * 2).exp()
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_after_accumulation():
    x = leaf()
    y = (x * 2).exp()
    x.register_post_accumulate_grad_hook(lambda t: nothing(y))
    return y


@closing
def a_hook_of_a_parameter():
    x = tg.nn.Parameter(tg.ones(4))
    y = (x * 2).exp()
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_of_an_intermediate():
    h = leaf() * 2
    y = h.exp() + h
    h.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_that_holds_its_own_tensor():
    y = leaf() * 2
    y.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_of_a_node():
    h = leaf() * 2
    y = h.exp()
    h.grad_fn.register_hook(lambda i, o: nothing(y))
    return y


@closing
def a_prehook_of_a_node():
    h = leaf() * 2
    y = h.exp()
    y.grad_fn.next_functions[0][0].register_prehook(lambda o: nothing(y))
    return y


@closing
def a_hook_of_an_accumulator():
    x = leaf()
    y = x * 2
    y.grad_fn.next_functions[0][0].register_hook(lambda i, o: nothing(y))
    return y


@closing
def metadata():
    h = leaf() * 2
    y = h.exp()
    h.grad_fn.metadata["out"] = y
    return y


@closing
def an_attribute_of_a_leaf():
    x = leaf()
    y = (x * 2).exp()
    x.out = y
    return y


@closing
def an_attribute_of_a_saved_intermediate():
    h = leaf() * 2
    y = h * h + 1
    h.out = y
    return y


@closing
def an_attribute_of_a_parameter():
    x = tg.nn.Parameter(tg.ones(4))
    y = (x * 2).exp()
    x.out = y
    return y


@closing
def an_attribute_set_through_the_dict():
    x = leaf()
    y = x * x
    vars(x)["out"] = y
    return y


@closing
def an_attribute_in_a_dict_that_was_taken_before():
    x = leaf()
    attributes = x.__dict__
    y = x * x
    attributes["out"] = y
    return y


@closing
def an_assigned_dict():
    x = leaf()
    y = x * x
    x.__dict__ = {"out": y}
    return y


@closing
def an_attribute_of_a_base():
    x = leaf() * 1
    y = x[:2] * 2
    x.out = y
    return y


@closing
def an_attribute_of_a_gradient():
    x = leaf()
    y = x * x
    g = tg.ones(4)
    x.grad = g
    z = y * 2
    g.out = z
    return z


@closing
def a_gradient_with_an_attribute():
    x = leaf()
    y = x * x
    g = tg.ones(4)
    g.out = y
    x.grad = g
    return y


@closing
def a_gradient_of_a_subclass():
    x = leaf()
    y = x * x
    g = tg.ones(4).as_subclass(Sub)
    x.grad = g
    g.out = y
    return y


@closing
def an_attribute_of_a_subclass():
    x = leaf().as_subclass(Sub)
    y = (x * 2).as_subclass(tg.Tensor) * 3
    x.out = y
    return y


@closing
def an_attribute_of_a_function_node():
    h = Double.apply(leaf() * 1)
    y = h.exp() * 2
    h.grad_fn.out = y
    return y


@closing
def an_attribute_of_a_custom_op_node():
    h = thrice(leaf() * 1)
    y = h.exp() * 2
    h.grad_fn.out = y
    return y


@closing
def a_packed_value():
    kept = []
    with saved_tensors_hooks(lambda t: kept, lambda p: tg.ones(4)):
        y = (leaf() * leaf()) * 2
    kept.append(y)
    return y


@closing
def a_value_packed_later():
    h = leaf() * leaf()
    y = h * 2
    h.grad_fn._raw_saved_self.register_hooks(lambda t: [y], lambda p: p)
    return y


@closing
def a_hook_behind_writes_through_views():
    x = leaf()
    y = x * 1
    y[:2].mul_(2)
    y[1:].add_(x[1:])
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_behind_a_list():
    x = leaf()
    y = tg.cat([x * 1, x, tg.stack([x, x]).sum(0)])
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_hook_behind_a_second_derivative():
    x = leaf()
    (y,) = grad((x * x * x).sum(), x, create_graph=True)
    x.register_hook(lambda g: nothing(y))
    return y


@closing
def a_list_that_is_an_argument():
    x = leaf()
    parts = [1, 3]
    y = x.split(parts)[0]
    z = y * 2
    parts.append(z)
    return z


@closing
def an_attribute_of_a_size():
    class Count(int):
        pass

    n = Count(4)
    n.result = tg.layer_norm(leaf(), (n,))
    return n.result


@closing
def a_view_of_a_tensor_with_an_attribute():
    x = leaf() * 1
    x.mine = []
    y = x[:2] * 2
    x.mine.append(y)
    return y
