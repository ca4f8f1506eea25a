"""Modules leave a method, and take the place of others in one; parts of loaded programs are modules of their own."""

import copy
import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


def loaded(module):
    file = io.BytesIO()
    jit.save(module, file)
    file.seek(0)
    return jit.load(file)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.floors = nn.ModuleList([nn.Linear(2, 2), nn.ReLU(), nn.Tanh()])
        self.top = nn.ReLU()

    def forward(self, x):
        return self.top(x)

    @jit.export
    def parts(self):
        return self.floors[::-2], [self.top, self.floors[1]]

    @jit.export
    def rebuilt(self, really: bool):
        before = self.top
        if really:
            self.top = self.floors[2]
        return before


X = tg.tensor([-1.0, 1.0])


def test_a_method_gives_modules():
    tower = jit.script(Tower())
    (last, first), (top, middle) = tower.parts()
    assert last is tower.floors[2] and first is tower.floors[0] and top is tower.top and middle is tower.floors[1]


def test_a_method_puts_a_module_in_the_place_of_another():
    tower = jit.script(Tower())
    relu = tower.top
    assert tower.rebuilt(False) is relu and tower(X).equal(X.relu())
    assert tower.rebuilt(True) is relu
    assert tower.top is tower.floors[2] and tower(X).equal(X.tanh())


@jit.interface
class Layer(nn.Module):
    def forward(self, x: tg.Tensor) -> tg.Tensor:
        pass


class Socket(nn.Module):
    plug: Layer

    def __init__(self):
        super().__init__()
        self.plug, self.spare = nn.ReLU(), nn.Tanh()

    def forward(self, x):
        return self.plug(x)

    @jit.export
    def put(self, layer: Layer, x):
        self.plug = layer
        return self.plug(x)

    @jit.export
    def mend(self, x, broken: bool):
        before = self.plug(x)
        if broken:
            self.plug = self.spare
        return before, self.plug(x)


def test_what_took_the_place_of_a_module_is_called_by_the_interface():
    socket = jit.script(Socket())
    tanh = jit.script(nn.Tanh())
    assert socket.put(tanh, X).equal(X.tanh()) and socket.plug is tanh and socket(X).equal(X.tanh())
    socket = jit.script(Socket())
    for broken, after in ((False, X.relu()), (True, X.tanh())):
        before, now = socket.mend(X, broken)
        assert before.equal(X.relu()) and now.equal(after)


def test_only_a_module_takes_the_place_of_a_module():
    class Odd(Tower):
        @jit.export
        def spoil(self):
            self.top = 3

    with pytest.raises(jit.Error, match="only a module"):
        jit.script(Odd())


def test_no_file_holds_a_method_that_gives_modules():
    with pytest.raises(tg.graph.GraphError, match=r"gives the module .* from Python"):
        loaded(jit.script(Tower()))

    class House(nn.Module):
        def __init__(self):
            super().__init__()
            self.tower = Tower()

        def forward(self, x):
            return self.tower(x)

    house = loaded(jit.script(House()))  # the methods of a part are left out alone
    assert house(X).equal(house.tower(X)) and not hasattr(house.tower, "parts")


def test_a_module_says_what_is_saved_of_the_one_in_it():
    class Inner(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.register_buffer("level", tg.zeros(1))

        @jit.script_method
        def __getstate__(self):
            return self.level, self.training

        @jit.script_method
        def __setstate__(self, state):
            self.level = state[0] + 1
            self.training = state[1]

    class Outer(jit.ScriptModule):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        @jit.script_method
        def __getstate__(self):
            return self.inner, self.training

        @jit.script_method
        def __setstate__(self, state):
            self.inner = state[0]
            self.training = state[1]

    outer = Outer(Inner())
    assert loaded(outer).inner.level.item() == 1 and outer.inner.level.item() == 0
    other = copy.deepcopy(outer)
    assert other.inner is not outer.inner and other.inner.level.item() == 0  # a copy is no file


def test_what_an_interface_says_is_all_that_is_known_where_modules_are_looped_over():
    @jit.interface
    class Named(nn.Module):
        def one(self, x: tg.Tensor) -> tg.Tensor:
            pass

    class Part(nn.Module):
        def one(self, x: tg.Tensor) -> tg.Tensor:
            return x + 1

        def forward(self, x):
            return x

    class Whole(nn.Module):
        part: Named

        def __init__(self):
            super().__init__()
            self.part, self.scale = Part(), nn.Linear(1, 1)

        def forward(self, x):
            for part in self.children():
                x = part(x)
            return x

        @jit.export
        def count(self) -> int:
            return len(list(self.parameters()))

    with pytest.raises(jit.Error, match="the interface says one"):
        jit.script(Whole())
    Whole.forward = lambda self, x: self.part.one(x)
    assert jit.script(Whole()).count() == 2


def test_modules_are_constants_by_themselves_and_not_in_a_list():
    class Listed(nn.Module):
        __constants__ = ["rows"]

        def __init__(self):
            super().__init__()
            self.rows = [nn.ReLU()]

        def forward(self, x):
            return x

    with pytest.raises(TypeError, match=r"Listed\.rows' is not a valid constant"):
        jit.script(Listed())


def test_forward_of_a_compiled_module_is_the_compiled_method():
    net = jit.script(Net())
    again = loaded(net)
    for module in (net, again, again.encoder):
        assert module.forward.code == module.code and module.forward.graph is module.graph
    assert again.encoder.forward(tg.ones(2, 2)).equal(net.encoder.forward(tg.ones(2, 2)))
    with pytest.raises(AttributeError, match="no method 'forward'"):
        again.heads.forward(X)


def test_code_comes_with_the_tensors_that_are_constants_of_it():
    one = tg.tensor([1.0, 2.0])

    def shifted(by=one):
        return by

    class Shift(nn.Module):
        def forward(self, x):
            return x + shifted()

    module = jit.script(Shift())
    for each in (module, loaded(module)):
        code, constants = each.code_with_constants
        assert code == each.code and constants.c0.tolist() == [1.0, 2.0] and len(vars(constants)) == 1


# ---- parts of loaded programs --------------------------------------------------------------------------------------


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(2, 3), nn.BatchNorm1d(3)
        self.calls, self._shape = 0, (2, 3)

    def forward(self, x, scale: float = 1.0):
        self.calls += 1
        return self.norm(self.inner(x)) * scale

    @jit.export
    def doubled(self, x):
        return self.inner(x) * 2

    @jit.export
    def noted(self, x):
        self.note(x)
        return x

    @jit.ignore
    def note(self, x):
        pass


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.heads = Encoder(), nn.ModuleList([nn.Linear(3, 1)])

    def forward(self, x):
        return self.heads[0](self.encoder(x))


def test_parts_of_a_loaded_program_are_called_by_themselves():
    net = jit.script(Net())
    again = loaded(loaded(net))
    x = tg.randn(4, 2)
    encoder = again.encoder
    assert isinstance(encoder, jit.ScriptModule) and encoder.original_name == "Encoder"
    assert encoder(x, scale=2.0).equal(net.encoder(x, 2.0)) and encoder.calls == 1 and encoder._shape == (2, 3)
    assert encoder.norm.running_mean.equal(net.encoder.norm.running_mean)  # the state is that of the whole
    assert encoder.doubled(x).equal(net.encoder.doubled(x)) and encoder.inner(x).equal(net.encoder.inner(x))
    assert again(x).equal(net(x)) and encoder.calls == 2
    encoder(x).sum().backward()
    assert encoder.inner.weight.grad is not None
    with pytest.raises(AttributeError, match="no method 'noted'"):  # it calls Python, so the file has it not
        encoder._method("noted")


def test_loaded_lists_and_dicts_of_modules_are_what_they_were():
    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.row = nn.ModuleList([nn.ReLU(), nn.Tanh()])
            self.named = nn.ModuleDict({"a": nn.ReLU()})
            self.after = nn.Sequential(nn.ReLU(), nn.Tanh())

        def forward(self, x):
            for layer in self.row:
                x = layer(x)
            return self.after(self.named["a"](x))

    rows = loaded(jit.script(Rows()))
    assert len(rows.row) == 2 and [m.original_name for m in rows.row] == ["ReLU", "Tanh"]
    assert rows.row[1](X).equal(X.tanh()) and rows.row[1:][0] is rows.row[1] and rows.after[0](X).equal(X.relu())
    assert list(rows.named) == ["a"] and rows.named["a"](X).equal(X.relu()) and rows.after(X).equal(X.relu().tanh())

    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = rows

        def forward(self, x):
            for layer in self.rows.row[1:]:
                x = layer(x)
            return self.rows.named["a"](self.rows.after(x))

    assert jit.script(Wrapped())(X).equal(Wrapped()(X))


def test_parts_are_saved_whatever_they_are_called():
    odd = nn.ModuleDict({"conv-1": nn.ReLU(), "a b/c": nn.Tanh()})

    class Keyed(nn.Module):
        def __init__(self):
            super().__init__()
            self.odd = odd

        def forward(self, x):
            return self.odd["conv-1"](x)

    again = loaded(loaded(jit.script(nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), Keyed())))))
    first, second = again.children()
    keyed = second[1]
    assert keyed.odd["conv-1"](X).equal(X.relu()) and keyed.odd["a b/c"](X).equal(X.tanh())
    assert second(X).equal(X.relu()) and again(X).equal(second(first(X)))


def test_parts_of_a_loaded_program_are_compiled_into_others():
    class Wrapped(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, x):
            y = self.net.encoder(x)
            return self.net.heads[0](y) + self.net.encoder.inner.bias.sum() + self.net.encoder.calls

    x = tg.randn(4, 2)
    made = jit.script(Net())
    eager, scripted = Wrapped(loaded(made)), jit.script(Wrapped(loaded(made)))
    want = eager(x)
    assert scripted(x).equal(want) and "net.encoder.inner.weight" in [s.name for s in scripted.graph.state]
    again = loaded(scripted)
    assert again(x).equal(eager(x)) and again.net.encoder.calls == 2
    assert again.net.encoder(x).equal(eager.net.encoder(x))
    alone = jit.script(nn.Sequential(loaded(made).encoder, nn.ReLU()))
    assert alone(x).equal(made.encoder(x).relu()) and "0.inner.weight" in [s.name for s in alone.graph.state]


def test_damaged_notes_of_parts_are_refused():
    from tinygrad_ext.jit.notes import check_notes
    from tinygrad_ext.jit.saving import program_of

    for change in ({"part": 3}, {"method": 3}, {"broadcasts": {"scale": 2}}):
        program = program_of(jit.script(Net()))
        next(note for note in program.notes.values() if note.get("part") == "encoder").update(change)
        with pytest.raises(ValueError):
            check_notes(program)
    program.notes[""]["classes"] = {"encoder": 3}
    with pytest.raises(ValueError):
        check_notes(program)
