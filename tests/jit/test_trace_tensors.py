"""What a traced program does to tensors besides ops happens, or is refused by line; nothing is dropped."""

import pytest
from captured import same_bits

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.graph.capture import CaptureError


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_leaves_what_eager_mode_leaves(name):
    def run(wrapped):
        o = World()

        def f(x):
            return PROGRAMS[name](o, x)

        before = {key: held[1:] for key, held in o.held().items()}
        step = jit.trace(f, (tg.tensor([1.0, 2.0]),)) if wrapped else f
        assert {key: held[1:] for key, held in o.held().items()} == before  # tracing changed nothing
        return [step(tg.tensor([n, n - 0.25])) for n in (1.0, 2.0, -3.0)], o.held()

    (results, after), (wanted, expected) = run(True), run(False)
    assert same_bits(results, wanted)
    for key, (tensor, grad, requires_grad) in expected.items():
        assert same_bits(after[key][:2], (tensor, grad)), key
        assert after[key][2] == requires_grad


OUTSIDE = {}


def outside(function):
    OUTSIDE[function.__name__] = function


@outside
def a_leaf_written_to_under_no_grad(o, x):
    early = o.w * x
    with tg.no_grad():
        o.w.clamp_(0.25, 1.5)
    return early + o.w * o.w


@outside
def a_leaf_written_to_through_data(o, x):
    o.w.data = o.w.data * 0.5
    o.w.data[0] += 1
    return o.w * x * o.w


@outside
def a_result_written_to_through_data(o, x):
    y = o.w * 3
    z = y + x
    y.data.mul_(2)
    return z + y * y


@outside
def frozen_for_some_lines(o, x):
    o.w.requires_grad_(False)
    y = o.w * o.v
    o.w.requires_grad_(True)
    return y * x + o.w


@outside
def detached_for_good(o, x):
    y = o.w * x
    y.detach_()
    return y * o.v


@outside
def a_penalty_on_gradients(o, x):
    y = (o.w * x).pow(2).sum()
    (grad,) = tg.autograd.grad(y, [o.w], create_graph=True)
    return grad * o.v


@pytest.mark.parametrize("name", OUTSIDE)
def test_gradients_asked_for_outside_are_those_of_eager_mode(name):
    def run(wrapped):
        o = World()

        def f(x):
            return OUTSIDE[name](o, x)

        x = tg.tensor([1.0, 2.0])
        f = jit.trace(f, (x,)) if wrapped else f
        out = f(x * 2)
        out.sum().backward()
        return out, o.held()

    (out, after), (wanted, expected) = run(True), run(False)
    assert same_bits(out, wanted)
    for key, (tensor, grad, _) in expected.items():
        assert same_bits(after[key][:2], (tensor, grad)), key


def reads_a_buffer_of_elements(o, x):
    return x if o.buffer > 0 else x * 2


def turns_a_parameter_into_a_number(o, x):
    return x * float(o.w[0])


def makes_a_list_of_a_buffer(o, x):
    return x * o.buffer.tolist()[0]


def overwrites_what_a_derivative_reads(o, x):
    y = (o.w * o.w * x).sum()
    o.w.data.mul_(2)
    y.backward()


def overwrites_what_a_later_derivative_reads(o, x):
    y = (o.w * x).exp()
    z = y * 2
    y.detach().zero_()
    return z


def writes_history_into_detached_memory(o, x):
    o.w.detach().copy_(o.v * x)


def keeps_history_on_a_buffer(o, x):
    o.buffer.copy_(o.w * x)


def freezes_for_good(o, x):
    o.w.requires_grad_(False)
    return o.w * x


def leaves_a_hook_on_a_parameter(o, x):
    o.w.register_hook(lambda grad: grad * 2)
    (o.w * x).sum().backward()


def hooks_a_gradient_that_comes_from_outside(o, x):
    y = o.w * x
    y.register_hook(lambda grad: grad * 2)
    return y


def hooks_of_a_module_that_a_gradient_from_outside_would_call(o, x):
    module = o.module
    module.register_full_backward_hook(lambda module, inner, outer: None)
    return module((o.w * x)[None])


def older_hooks_of_a_module(o, x):
    module = o.module
    module.register_backward_hook(lambda module, inner, outer: None)
    module((o.w * x)[None]).sum().backward()


def resizes_data(o, x):
    o.w.data = tg.cat([x, x])


def changes_the_shape_of_a_buffer(o, x):
    o.grid.t_()


def changes_the_shape_of_an_argument(o, x):
    x.unsqueeze_(0)


def sets_memory(o, x):
    o.buffer.set_(x)


REFUSED = {
    reads_a_buffer_of_elements: "reads the elements",
    turns_a_parameter_into_a_number: "reads the elements",
    makes_a_list_of_a_buffer: "reads the elements",
    overwrites_what_a_derivative_reads: "Write after backward",
    overwrites_what_a_later_derivative_reads: "Write after backward",
    writes_history_into_detached_memory: "Write to a clone",
    keeps_history_on_a_buffer: r"Write its detach\(\)",
    freezes_for_good: "Change it outside",
    leaves_a_hook_on_a_parameter: r"or remove\(\) it",
    hooks_a_gradient_that_comes_from_outside: r"Capture backward\(\) too",
    hooks_of_a_module_that_a_gradient_from_outside_would_call: r"Capture backward\(\) too",
    older_hooks_of_a_module: "full backward hooks",
    resizes_data: "the same shape and dtype only",
    changes_the_shape_of_a_buffer: "use the form without",
    changes_the_shape_of_an_argument: "use the form without",
    sets_memory: "do it outside",
}


@pytest.mark.parametrize("refused", REFUSED, ids=lambda f: f.__name__)
def test_what_a_graph_would_lose_is_refused(refused):
    o = World()
    before = o.held()
    with pytest.raises(RuntimeError, match=REFUSED[refused]) as error:
        jit.trace(lambda x: refused(o, x), (tg.tensor([1.0, 2.0]),))
    assert "reads" in str(error.value) or isinstance(error.value, CaptureError)
    assert all(a is b for was, now in zip(before.values(), o.held().values()) for a, b in zip(was, now))
    assert o.w.tolist() == [1.0, 2.0] and o.buffer.tolist() == [0.5, 0.25]


def test_tensors_from_outside_that_share_memory_are_not_written_to():
    whole = tg.zeros(4)
    part, other = whole[:2], whole[2:]
    with pytest.raises(CaptureError, match="Make the view inside"):
        jit.trace(lambda x: whole.add_(x).sum() + part.sum(), (tg.ones(4),))
    step = jit.trace(lambda x: part.add_(x).sum() + other.sum(), (tg.ones(2),))  # side by side
    assert step(tg.ones(2)) == 2 and whole.tolist() == [1, 1, 0, 0]


def test_levels_may_see_attributes_of_all_tensors():
    class Seen(tg.overrides.Observer):
        sees_attributes = True

        def __init__(self):
            self.reads, self.writes = [], []

        def process(self, operation, args):
            return NotImplemented

        def read(self, value, name, args):
            self.reads.append((name, args))
            return 5.0 if name == "__float__" else NotImplemented

        def write(self, tensor, name, new):
            self.writes.append((name, new))
            return None if name == "data" else NotImplemented

    x = tg.ones(2)
    with Seen() as seen:
        x.requires_grad = True
        x.requires_grad_(requires_grad=False)
        x.data = tg.zeros(2)
        assert float(x) == 5.0
    assert ("requires_grad_", (False,)) in seen.reads and ("requires_grad", True) in seen.writes
    assert x.tolist() == [1, 1] and not x.requires_grad
