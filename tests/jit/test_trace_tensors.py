"""What a traced program does to tensors besides ops happens, or is refused by line; nothing is dropped."""

import pytest
from captured import same_bits
from tensor_programs import PROGRAMS, World

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.graph.capture import CaptureError


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


def test_parameters_made_in_a_program_are_leaves_of_it():
    def program(x):
        p = tg.nn.Parameter(x * 2)
        q = tg.nn.Parameter(data=tg.ones(3), requires_grad=False)
        (p * x + q).sum().backward()
        return p.grad, p.requires_grad, q.requires_grad

    traced = jit.trace(program, (tg.ones(3),))
    x = tg.randn(3)
    assert traced(x)[0].equal(x) and traced(x)[1:] == program(x)[1:] == (True, False)


def test_modules_made_in_a_program_have_parameters():
    def program(x):
        module = tg.nn.Linear(3, 2)
        module(x).sum().backward()
        return module(x), [p.grad for p in module.parameters()], len(module.state_dict())

    traced, x = jit.trace(program, (tg.ones(4, 3),)), tg.randn(4, 3)
    tg.manual_seed(1)
    made = traced(x)
    tg.manual_seed(1)
    assert same_bits(made, program(x))
    with pytest.raises(TypeError, match="cannot assign"):
        jit.trace(lambda x: setattr(tg.nn.Linear(1, 1), "weight", x), (tg.ones(1, 1),))


@pytest.mark.parametrize(
    "program",
    [
        lambda x, n: tg.normal(x, n) + x.clone().uniform_(0, n) + x.clone().normal_(0, n),
        lambda x, n: x.roll(n) + x.sum(n, keepdim=True),
        lambda x, n: tg.add(x, x, alpha=n) + tg.nn.functional.softplus(x, n),
    ],
)
@pytest.mark.parametrize("made", [lambda f, args: jit.trace(f, args), lambda f, args: tg.compile(f, fullgraph=True)])
def test_tensors_stand_for_numbers_where_eager_mode_takes_them(program, made):
    x = tg.rand(2, 3)
    run = made(program, (x, tg.tensor(1)))
    for number in (1, 0, 1):
        tg.manual_seed(1)
        expected = program(x, tg.tensor(number))
        tg.manual_seed(1)
        assert tg.equal(run(x, tg.tensor(number)), expected)


# ---- memory and devices ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [lambda y: y.resize_(2), lambda y: y.resize_as_(tg.ones(3, 2))])
def test_a_tensor_that_is_resized_is_refused_while_it_is_captured(change):
    def program(x):
        y = x.clone()
        change(y)
        return y * 2

    x = tg.arange(6.0)
    with pytest.raises(CaptureError, match=r"resize_\(\) of a tensor of shape \[6\] to"):
        jit.trace(program, x)
    assert tg.equal(tg.compile(program)(x), program(x))


def test_a_tensor_that_has_the_size_already_may_be_resized():
    traced = jit.trace(lambda x: (x * 2).resize_(x.shape).resize_as_(x), tg.ones(2, 3))
    assert traced(tg.ones(4, 1)).tolist() == [[2]] * 4


def test_a_value_of_a_graph_has_no_storage_and_no_class_of_its_own():
    class Named(tg.Tensor):
        pass

    for asked, word in (
        (lambda y: y.untyped_storage().nbytes(), r"untyped_storage\(\) is not captured"),
        (lambda y: y.as_subclass(Named), r"as_subclass\(\): .* is carried by a transform or a capture"),
    ):
        with pytest.raises(RuntimeError, match=word):
            jit.trace(lambda x, asked=asked: x * 1 if asked(x * 2) else x, tg.ones(2))
    traced = jit.trace(lambda x: (x * 2).as_subclass(tg.nn.Parameter) + 1, tg.ones(2))
    assert traced(tg.zeros(2)).tolist() == [1, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda x, where: tg.ones(2, device=where),
        lambda x, where: tg.arange(2, device=where),
        lambda x, where: tg.full((2,), 3, device=where),
        lambda x, where: tg.tensor([1.0, 2.0], device=where),
        lambda x, where: x.new_ones(2, device=where),
        lambda x, where: tg.zeros_like(x, device=where),
        lambda x, where: tg.randn(2, device=where),
    ],
)
def test_devices_are_told_by_words(make):
    def program(x, where):
        return make(x, where) + x

    x, found = tg.ones(2), []
    for function in (program, jit.trace(program, (x, "cpu")), tg.compile(program, fullgraph=True)):
        tg.manual_seed(1)
        found.append(function(x, "cpu"))
    assert tg.equal(found[0], found[1]) and tg.equal(found[0], found[2])
