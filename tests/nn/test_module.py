"""Module: registration, attributes, walking, conversion, copies, the printed form."""

import copy
import gc
import pickle
import weakref

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(4, 2)
        self.scale = nn.Parameter(tg.ones(1))
        self.register_buffer("count", tg.zeros(2))
        self.register_buffer("scratch", tg.zeros(2), persistent=False)

    def forward(self, input):
        return self.fc2(self.act(self.fc1(input))) * self.scale


def names(pairs):
    return [name for name, _ in pairs]


def test_parts_are_found_by_dotted_name_in_order_of_registration():
    net = Net()
    assert names(net.named_parameters()) == ["scale", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
    assert names(net.named_buffers()) == ["count", "scratch"]
    assert names(net.named_children()) == ["fc1", "act", "fc2"]
    assert names(net.named_modules()) == ["", "fc1", "act", "fc2"]
    assert net.get_submodule("fc1") is net.fc1
    assert net.get_submodule("") is net
    assert net.get_parameter("fc2.bias") is net.fc2.bias
    assert net.get_buffer("count") is net.count


def test_a_shared_part_is_listed_once_unless_asked_for():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    assert names(net.named_parameters()) == ["0.weight", "0.bias", "1.bias"]
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    twice = nn.Sequential(net[0], net[0])
    assert len(list(twice.modules())) == 2
    assert len(list(twice.named_modules(remove_duplicate=False))) == 3


def test_attributes_follow_writes_through_the_dicts():
    net = Net()
    new = nn.Parameter(tg.zeros(1))
    net._parameters["scale"] = new
    assert net.scale is new
    del net._parameters["scale"]
    assert not hasattr(net, "scale")
    net._parameters.update(scale=new, other=None)
    assert net.scale is new and net.other is None
    assert net._parameters.pop("other") is None
    assert net._parameters.pop("other", 3) == 3
    assert not hasattr(net, "other")
    net._buffers = {"count": tg.ones(1)}
    assert net.count.shape == (1,) and not hasattr(net, "scratch")
    net._modules.clear()
    assert not hasattr(net, "fc1")


def test_assignment_keeps_the_kind_of_a_registered_name():
    net = Net()
    with pytest.raises(TypeError, match="cannot assign 'int' as parameter 'scale'"):
        net.scale = 3
    with pytest.raises(TypeError, match="cannot assign 'int' as child module 'fc1'"):
        net.fc1 = 3
    with pytest.raises(TypeError, match="cannot assign 'int' as buffer 'count'"):
        net.count = 3
    net.scale = None
    net.fc1 = None
    net.count = None
    assert net._parameters["scale"] is None and net.fc1 is None and net.count is None
    assert "fc1" not in names(net.named_children())
    net.scale = nn.Linear(1, 1)
    assert "scale" in net._modules and "scale" not in net._parameters


def test_a_plain_attribute_becomes_a_part_by_assignment():
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(tg.ones(1))
    assert names(net.named_parameters()) == ["x"]
    del net.x
    assert not hasattr(net, "x") and not list(net.parameters())
    with pytest.raises(AttributeError):
        del net.x


def test_buffer_assignment_registers():
    net = nn.Module()
    net.a = nn.Buffer(tg.ones(2))
    net.b = nn.Buffer(tg.ones(2), persistent=False)
    assert names(net.named_buffers()) == ["a", "b"]
    assert list(net.state_dict()) == ["a"]
    assert isinstance(net.a, nn.Buffer) and not isinstance(tg.ones(1), nn.Buffer)
    net.b = tg.zeros(2)
    assert names(net.named_buffers()) == ["a", "b"] and list(net.state_dict()) == ["a"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.register_parameter("a.b", None), KeyError, "contain"),
        (lambda m: m.register_parameter("", None), KeyError, "empty string"),
        (lambda m: m.register_parameter("forward", None), KeyError, "already exists"),
        (lambda m: m.register_parameter(3, None), TypeError, "should be a string"),
        (lambda m: m.register_parameter("x", 3), TypeError, "cannot assign 'int' object to parameter 'x'"),
        (lambda m: m.register_buffer("x", 3), TypeError, "cannot assign 'int' object to buffer 'x'"),
        (lambda m: m.register_buffer("a.b", None), KeyError, "contain"),
        (lambda m: m.add_module("x", 3), TypeError, "is not a Module subclass"),
        (lambda m: m.add_module("forward", None), KeyError, "already exists"),
        (lambda m: m.train("x"), ValueError, "expected to be boolean"),
        (lambda m: m.to(tg.int64), TypeError, "only accepts floating point or complex"),
        (lambda m: m.to(object()), TypeError, "expected a device"),
        (lambda m: m.get_submodule("a.b"), AttributeError, "has no attribute `a`"),
        (lambda m: m.get_submodule("weight"), AttributeError, "is not an nn.Module"),
        (lambda m: m.get_parameter("training"), AttributeError, "is not an nn.Parameter"),
        (lambda m: m.get_buffer("weight"), AttributeError, "is not a buffer"),
        (lambda m: m.set_submodule("", m), ValueError, "without a target name"),
        (lambda m: m.set_submodule("x", 3), ValueError, "is not an nn.Module"),
        (lambda m: m.set_submodule("x", nn.ReLU(), strict=True), AttributeError, "has no attribute `x`"),
        (lambda m: m.get_extra_state(), RuntimeError, "get_extra_state"),
        (lambda m: m.set_extra_state(1), RuntimeError, "set_extra_state"),
        (lambda m: nn.Module()(3), NotImplementedError, 'missing the required "forward" function'),
        (lambda m: nn.Module(3), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda m: nn.Module(a=3), TypeError, "unexpected keyword argument 'a'"),
        (lambda m: m.wieght, AttributeError, "'Linear' object has no attribute 'wieght'"),
    ],
)
def test_errors_name_what_came_and_what_was_expected(call, error, text):
    with pytest.raises(error) as caught:
        call(nn.Linear(2, 2))
    assert text in str(caught.value)


def test_looking_up_by_a_nearly_right_path_suggests_the_right_one():
    with pytest.raises(AttributeError, match=r"Did you mean: 'weight'\?"):
        nn.Linear(2, 2).get_parameter("wieght")


def test_an_unknown_attribute_tells_the_interpreter_where_to_look_for_the_nearest():
    layer = nn.Linear(2, 2)
    with pytest.raises(AttributeError) as caught:
        layer.wieght
    assert caught.value.name == "wieght" and caught.value.obj is layer


def test_a_second_init_starts_afresh():
    net = nn.Sequential(nn.ReLU(), nn.ReLU())
    net.__init__(nn.ReLU())
    assert len(net) == 1


def test_plain_attributes_may_come_before_init():
    class Early(nn.Module):
        def __init__(self):
            self.size = 3
            self.size = 4
            super().__init__()

    assert Early().size == 4


def test_call_super_init_hands_arguments_on():
    class Other:
        def __init__(self, value):
            self.value = value

    class Both(nn.Module, Other):
        call_super_init = True

    assert Both(5).value == 5


def test_a_subclass_may_define_getattr_and_call():
    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 3)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

        def __call__(self, *args):
            return "own", super().__call__(*args)

        def forward(self, input):
            return self.inner(input)

    wrapper = Wrapper()
    assert wrapper.out_features == 3
    assert wrapper(tg.ones(1, 2))[0] == "own"
    assert wrapper.__getattr__("inner") is wrapper.inner


def test_a_subclass_may_keep_its_parts_in_dicts_of_its_own():
    """As libraries do that run a module's forward with other tensors (a plain dict does not write to attributes)."""

    class Functional(nn.Linear):
        def __init__(self):
            nn.Module.__init__(self)
            self._parameters = {"weight": None, "bias": None}

        def __setattr__(self, name, value):
            if name in self.__dict__.get("_parameters", ()):
                self._parameters[name] = value
            else:
                object.__setattr__(self, name, value)

    layer = Functional()
    layer.weight = tg.ones(1, 2)
    assert layer(tg.ones(2)).tolist() == [2.0]
    layer.weight = tg.ones(1, 2) * 3
    assert layer(tg.ones(2)).tolist() == [6.0]


def test_forward_replaced_on_the_instance_or_the_class_is_called():
    layer = nn.Identity()
    layer.forward = lambda input: "instance"
    assert layer(1) == "instance"

    class Double(nn.Identity):
        pass

    double = Double()
    assert double(1) == 1
    Double.forward = lambda self, input: "class"
    assert double(1) == "class"
    Double.__call__ = lambda self, input: "call"
    assert double(1) == "call"


def test_call_takes_keywords_and_many_arguments():
    class Many(nn.Module):
        def forward(self, *args, **kwargs):
            return len(args), kwargs

    assert Many()() == (0, {})
    assert Many()(*range(20), a=1) == (20, {"a": 1})


def test_train_eval_apply_and_requires_grad_reach_every_module():
    net = Net()
    assert net.eval() is net and not net.fc1.training
    assert net.train() is net and net.fc1.training
    seen = []
    assert net.apply(lambda module: seen.append(type(module).__name__)) is net
    assert seen == ["Linear", "ReLU", "Linear", "Net"]
    net.requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_zero_grad_drops_or_zeroes():
    net = Net()
    net(tg.ones(2, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert float(net.scale.grad) == 0
    net.zero_grad()
    assert net.scale.grad is None


def test_casts_keep_the_parameter_objects_and_skip_integers():
    net = nn.BatchNorm1d(3)
    weight = net.weight
    assert net.double() is net
    assert net.weight is weight and weight.dtype == tg.float64 and net.running_mean.dtype == tg.float64
    assert net.num_batches_tracked.dtype == tg.int64
    net.to(tg.ones(1))
    assert weight.dtype == tg.float32
    net.to("cpu", tg.float64, non_blocking=True)
    assert weight.dtype == tg.float64
    for cast, dtype in (("half", tg.float16), ("bfloat16", tg.bfloat16), ("float", tg.float32)):
        getattr(net, cast)()
        assert weight.dtype == dtype and net.running_mean.dtype == dtype


def test_casts_take_the_gradient_along():
    layer = nn.Linear(2, 1)
    layer(tg.ones(1, 2)).sum().backward()
    layer.double()
    assert layer.weight.grad.dtype == tg.float64


def test_meta_modules_get_memory_by_to_empty():
    layer = nn.Linear(2, 3, device="meta")
    assert layer.weight.device.type == "meta"
    layer.to_empty(device="cpu")
    assert layer.weight.device.type == "cpu" and isinstance(layer.weight, nn.Parameter)


def test_set_submodule_replaces_below():
    net = nn.Sequential(nn.Sequential(nn.ReLU()))
    net.set_submodule("0.0", nn.Tanh())
    assert isinstance(net[0][0], nn.Tanh)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_deep_copies_are_independent_and_complete(duplicate):
    net = Net()
    net.fc1.extra = net.fc2  # registers: a child by two names stays one
    twin = duplicate(net)
    assert twin.fc1.extra is twin.fc2
    assert twin.fc1.weight is not net.fc1.weight
    assert names(twin.named_parameters()) == names(net.named_parameters())
    twin._buffers["count"] = tg.ones(2)
    assert float(twin.count.sum()) == 2 and float(net.count.sum()) == 0
    assert list(twin.state_dict()) == list(net.state_dict())


def test_a_shallow_copy_shares_tensors_but_registers_on_its_own():
    net = Net()
    twin = copy.copy(net)
    assert twin.scale is net.scale
    twin.scale = nn.Parameter(tg.zeros(1))
    assert net.scale.tolist() == [1] and twin.scale.tolist() == [0]


def test_a_class_with_its_own_getstate_copies_right():
    class Custom(Net):
        def __getstate__(self):
            return dict(self.__dict__)

    twin = copy.deepcopy(Custom())
    twin._buffers["count"] = tg.ones(2)
    assert float(twin.count.sum()) == 2


def test_a_dropped_module_is_freed_at_once():
    net = Net()
    gone = weakref.ref(net)
    gc.disable()
    try:
        del net
        assert gone() is None
    finally:
        gc.enable()


def test_printed_form_nests():
    assert repr(Net()) == (
        "Net(\n"
        "  (fc1): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (act): ReLU()\n"
        "  (fc2): Linear(in_features=4, out_features=2, bias=True)\n"
        ")"
    )


def test_dir_lists_parts_but_not_numbers():
    assert {"fc1", "scale", "count", "forward"} <= set(dir(Net()))
    assert "0" not in dir(nn.Sequential(nn.ReLU()))


def test_a_property_that_lacks_something_stands_aside_for_a_buffer_of_its_name():
    class Decay(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("beta", tg.tensor([0.5]))

        @property
        def beta(self):
            return (self.tau - 1) / self.tau

        @property
        def gone(self):
            return self.nowhere

    class Below(Decay):
        pass

    for layer in (Decay(), Below()):
        assert layer.beta.tolist() == [0.5]
        with pytest.raises(AttributeError, match="object has no attribute 'gone'"):
            _ = layer.gone
        layer.tau = tg.tensor([4.0])
        assert layer.beta.tolist() == [0.75] and list(layer.state_dict()) == ["beta"]


def test_the_dicts_of_a_module_make_others_of_their_class():
    layer = nn.Linear(2, 3)
    layer.register_forward_hook(lambda *args: None)
    for table in (layer._parameters, layer._buffers, layer._modules, layer._forward_hooks):
        other = type(table)(dict(table))
        assert other == table and other is not table
        other.clear()
    assert len(layer._forward_hooks) == 1 and len(list(layer.parameters())) == 2
