"""Programs that do things to tensors besides ops: PROGRAMS, name -> a function of a World and a tensor."""

import tinygrad_ext as tg
from tinygrad_ext import nn


class World:
    """Tensors that a program uses besides its argument."""

    def __init__(self):
        self.w = nn.Parameter(tg.tensor([1.0, 2.0]))
        self.v = nn.Parameter(tg.tensor([3.0, -1.0]))
        self.buffer = tg.tensor([0.5, 0.25])
        self.grid = tg.zeros(2, 3)
        self.hooked = nn.Parameter(tg.ones(2))
        self.hooked.register_hook(lambda grad: grad * 3)
        self.hooked.register_post_accumulate_grad_hook(lambda p: p.grad.add_(1))

        self.module = nn.PReLU(2)

    def held(self):
        named = {**vars(self), "module": self.module.weight}.items()
        return {name: (t, t.grad, t.requires_grad) for name, t in named}


PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function


@program
def data_added_to_after_backward(o, x):
    o.w.grad = None
    (o.w * x).sum().backward()
    o.w.data.add_(o.w.grad.data, alpha=-0.5)


@program
def data_of_a_view(o, x):
    o.grid.data[1] += x.sum()
    return o.grid[:, 0] * 2


@program
def data_set(o, x):
    o.w.data = o.w.data * 0.5 + x
    return (o.w * o.w).detach()


@program
def detach_copied_into(o, x):
    o.w.detach().copy_(x)
    o.v.detach()[0] = 7
    return o.w * o.v


@program
def history_goes_on_behind_a_write_to_data(o, x):
    y = o.w * 3
    z = y + x
    y.data.mul_(2)
    o.w.grad = None
    (z + y * 5).sum().backward()
    return y.detach()


@program
def grad_set_to_none(o, x):
    o.w.grad = None
    (o.w * x).sum().backward()
    del o.v.grad
    (o.v * x).sum().backward()


@program
def grad_replaced(o, x):
    (o.w * x).sum().backward()
    o.w.grad = o.w.grad * 0.5


@program
def grad_asked_for(o, x):
    if o.w.grad is None:
        o.w.grad = x.clone()
    else:
        o.w.grad.mul_(2)


@program
def grads_of_higher_order_added_up(o, x):
    o.w.grad = None
    (o.w**3 * x).sum().backward(create_graph=True)
    grad, o.w.grad = o.w.grad, None
    (grad**2).sum().backward()


@program
def backward_with_inputs(o, x):
    o.w.grad = o.v.grad = None
    (o.w * o.v * x).sum().backward(inputs=[o.w])
    return o.v.grad is None


@program
def hooks_of_parameters_from_before(o, x):
    (o.hooked * x).sum().backward()


@program
def hooks_put_on_and_taken_off(o, x):
    handle = o.w.register_hook(lambda grad: grad * 2)
    y = o.w * x
    y.register_hook(lambda grad: grad + 1)
    off = y.register_hook(lambda grad: grad * 100)
    off.remove()
    (y * y).sum().backward()
    handle.remove()


@program
def hooks_run_where_gradients_are_asked_for(o, x):
    y = o.w * x
    y.register_hook(lambda grad: grad * 2)
    z = y * o.v
    return tg.autograd.grad(z.sum(), [y, o.v])


@program
def full_backward_hooks_of_modules(o, x):
    seen = []

    def hook(module, inner, outer):
        seen.append(outer[0] * 1)
        return (inner[0] * 2,)

    module = o.module
    handles = module.register_full_backward_hook(hook), module.register_full_backward_pre_hook(lambda m, g: (g[0] + 1,))
    o.w.grad = None
    (module((o.w * x)[None]) * o.v).sum().backward()
    for handle in handles:
        handle.remove()
    return seen


@program
def gradients_of_intermediates_are_kept(o, x):
    y = o.w * x
    y.retain_grad()
    (y * y).sum().backward()
    return y.grad, y.is_leaf, y.retains_grad


@program
def leaves_made_inside(o, x):
    a, b = tg.zeros_like(x, requires_grad=True), tg.ones(2, requires_grad=True)
    c = x.detach().clone().requires_grad_()
    before = b * 2
    frozen = a.requires_grad
    ((a + b * c) * x + before).sum().backward()
    return a.grad, b.grad, c.grad, frozen, a.is_leaf


@program
def a_leaf_from_the_middle_on(o, x):
    c = x * 1
    early = c * o.w
    c.requires_grad_()
    o.w.grad = None
    (early + c * o.v).sum().backward()
    return c.grad


@program
def frozen_and_thawed(o, x):
    o.w.requires_grad_(False)
    y = o.w * o.v * x
    o.w.requires_grad = True
    (y + o.w).sum().backward()


@program
def frozen_between_forward_and_backward(o, x):
    o.w.grad = None
    y = (o.w * o.v).sum()
    o.w.requires_grad_(False)
    y.backward()
    o.w.requires_grad_(True)


@program
def detached_in_place(o, x):
    y = o.w * x
    y.detach_()
    return y.requires_grad, y * 2


@program
def shapes_changed_in_place(o, x):
    y = (o.w * x)[None].repeat(3, 1)
    view = y[1:]
    y.t_()
    y[0] = 5
    y.unsqueeze_(0).transpose_(1, 2)
    shape = tuple(y.shape), y.dim(), y.size(-1)
    y.squeeze_(0)[:, 1].mul_(2)
    o.w.grad = None
    (y * view.sum()).sum().backward()
    return y, view, shape


@program
def history_that_ends_in_the_program(o, x):
    o.buffer.mul_(0.5).add_(x)
    o.w.grad = None
    (o.w * o.buffer).sum().backward()
    o.w.data.clamp_(-1, 1)


@program
def a_number_read_of_a_buffer(o, x):
    o.buffer.add_(1)
    return x * o.buffer[0].item()
