"""Parameters and buffers of exported programs: converted modules, tied weights."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import export, nn


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.register_buffer("b", tg.ones(3))

    def forward(self, x):
        return self.second(self.first(x)) + self.b


@pytest.mark.parametrize("dtype", [tg.float64, tg.float16])
def test_a_module_is_converted_before_it_is_compiled_anew(dtype):
    net = Tied()
    program = export.export(net, (tg.ones(2, 3),))
    module, x = program.module(), tg.rand(2, 3, dtype=dtype)
    assert module.to("cpu").float()(tg.ones(2, 3)).dtype is tg.float32 and "_source" in module.__dict__
    assert module.to(dtype) is module and module(x).dtype is dtype
    assert tg.equal(module(x), net.to(dtype)(x))
    with pytest.raises(RuntimeError, match="the same dtype"):
        module(tg.ones(2, 3))
    assert program.module()(x).shape == (2, 3)  # its parameters are the program's
    assert program.module().to("meta")(x.to("meta")).is_meta


@pytest.mark.parametrize("dtype", [tg.float64, tg.bfloat16])
def test_a_program_whose_module_was_converted_is_decomposed_and_saved_as_it_is_now(dtype):
    net, x = nn.Sequential(nn.Linear(3, 3), nn.ReLU()), tg.rand(2, 3)
    program = export.export(net, (x,), dynamic_shapes=({0: export.Dim("n")},))
    program.module().to(dtype)
    assert program.example_inputs[0][0].dtype is dtype and {t.dtype for t in program.parameters()} == {dtype}
    wanted = net.to(dtype)(x.to(dtype))
    room = io.BytesIO()
    export.save(program, room)
    room.seek(0)
    for made in (program.run_decompositions(), export.load(room)):
        assert tg.equal(made.module()(x.to(dtype)), wanted)
        assert made.module()(tg.ones(5, 3, dtype=dtype)).shape == (5, 3)
    assert program.graph.find_nodes(op="output")[0].args[0][0].meta["val"].dtype is dtype


def test_tied_weights_have_all_their_names():
    net, room = Tied(), io.BytesIO()
    program = export.export(net, (tg.ones(2, 3),))
    export.save(program, room)
    room.seek(0)
    for made in (program, export.load(room)):
        module = made.module()
        assert set(made.state_dict) == set(module.state_dict()) == set(net.state_dict())
        assert made.state_dict["second.weight"] is made.state_dict["first.weight"]
        assert module.second.weight is module.first.weight
        assert [name for name, _ in module.named_parameters()] == ["first.weight", "first.bias", "second.bias"]
        other = Tied()
        module.load_state_dict(other.state_dict())
        assert tg.equal(module(tg.ones(2, 3)), other(tg.ones(2, 3)))
