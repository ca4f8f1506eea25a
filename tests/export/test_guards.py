"""What exported programs ask of their arguments, before and after recompile(), and how results are nested."""

import copy
import io
import pickle
from collections import OrderedDict, namedtuple

import pytest

import tinygrad_ext as tg
from tinygrad_ext import export, nn
from tinygrad_ext.export import Dim
from tinygrad_ext.utils import _pytree as pytree

Pair = namedtuple("Pair", "first second")


class Box:
    def __init__(self, inside):
        self.inside = inside


@pytest.fixture
def box():
    pytree.register_pytree_node(Box, lambda box: ([box.inside], None), lambda inside, _: Box(*inside))
    yield
    pytree._deregister_pytree_node(Box)


class Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Flagged(nn.Module):
    def forward(self, x, flag, word):
        return x * 2 if flag and word == "a" else x


def compiled(program):
    module = program.module()
    module.recompile()
    assert "_source" not in module.__dict__
    return module


@pytest.mark.parametrize("made", [export.ExportedProgram.module, compiled])
def test_declared_sizes_and_words_are_asked_for(made):
    module = made(export.export(nn.ReLU(), (tg.ones(5, 3),), dynamic_shapes=({0: Dim("n", min=2, max=20)},)))
    assert module(tg.ones(7, 3)).shape == (7, 3)
    for wrong, told in ((tg.ones(5, 4), r"input.shape\[1\] is 4"), (tg.ones(50, 3), "n is from 2 to 20")):
        with pytest.raises(AssertionError, match=told):
            module(wrong)
    module, x = made(export.export(Flagged(), (tg.ones(2), True, "a"))), tg.ones(2)
    assert module(x, True, "a").tolist() == [2, 2]
    with pytest.raises(AssertionError, match="flag: got False, but the program was exported for True"):
        module(x, False, "a")
    with pytest.raises(AssertionError, match="word: got 'b', but the program was exported for 'a'"):
        module(x, True, "b")


def decides(x):
    twice = x.repeat(2, 1)
    return twice + 1 if twice.shape[0] != 40 else twice


def test_decisions_by_open_sizes_are_no_nodes():
    program = export.export(Of(decides), (tg.ones(5, 3),), dynamic_shapes=({0: Dim("n")},))
    assert "prim::guard" in str(program.captured)
    names = [node.target.name() for node in program.graph.nodes if node.op == "call_function"]
    assert names == ["aten::repeat", "aten::add.Tensor"]
    module = compiled(program)
    for run in (module, copy.deepcopy(module)):
        assert run(tg.ones(7, 3)).shape == (14, 3)
        for _ in range(2):
            with pytest.raises(AssertionError, match="Guard failed"):
                run(tg.ones(20, 3))
    calls = module.graph.find_nodes(op="call_module", target="_guards_fn")
    assert len(calls) == 1 and calls[0].is_impure() and not module.graph.eliminate_dead_code()
    free = program.module(check_guards=False)
    free.recompile()
    assert free(tg.ones(20, 3)).shape == (40, 3) and not free.graph.find_nodes(op="call_module")


def test_modules_with_guards_are_pickled_and_exported_again():
    program = export.export(nn.ReLU(), (tg.ones(5, 3),), dynamic_shapes=({0: Dim("n", max=20)},))
    module = pickle.loads(pickle.dumps(compiled(program)))
    with pytest.raises(AssertionError, match="n is from 0 to 20"):
        module(tg.ones(21, 3))
    again = export.export(module, (tg.ones(6, 3),), dynamic_shapes=({0: Dim("m")},))
    assert again.module()(tg.ones(20, 3)).shape == (20, 3)
    with pytest.raises(RuntimeError, match="<= 20"):
        again.module()(tg.ones(30, 3))


def test_decisions_by_elements_stay_in_the_graph():
    def chosen(x):
        kept = x[x > 0]
        return kept * 2 if kept.shape[0] != 3 else kept

    program = export.export(Of(chosen), (tg.tensor([1.0, -1.0]),))
    module = compiled(program)
    assert module(tg.tensor([1.0, 2.0])).tolist() == [2, 4]


# ---- how arguments and results are nested ---------------------------------------------------------------------------


@pytest.mark.parametrize("made", [export.ExportedProgram.module, compiled])
def test_results_are_of_the_types_that_they_were(made, box):
    def results(x):
        return Pair(x + 1, [x + 2]), OrderedDict(b=x, a=None), Box((x * 2, 3)), x.max(0)

    pair, ordered, boxed, largest = made(export.export(Of(results), (tg.ones(2),)))(tg.ones(2))
    assert type(pair) is Pair and pair.second[0].tolist() == [3, 3]
    assert type(ordered) is OrderedDict and list(ordered) == ["b", "a"] and ordered["a"] is None
    assert type(boxed) is Box and boxed.inside[0].tolist() == [2, 2] and boxed.inside[1] == 3
    assert type(largest) is tg.return_types.max and largest.indices.item() == 0


def test_results_of_a_file_are_plain():
    program, room = export.export(Of(lambda x: Pair(x, OrderedDict(a=-x))), (tg.ones(1),)), io.BytesIO()
    export.save(program, room)
    room.seek(0)
    result = export.load(room).module()(tg.ones(1))
    assert type(result) is tuple and type(result[1]) is dict and result[1]["a"].item() == -1


def test_results_of_unflattened_and_decomposed_programs_are_of_their_types():
    program = export.export(Of(lambda x: Pair(x, x.square())), (tg.tensor([3.0]),))
    for made in (export.unflatten(program), program.run_decompositions().module()):
        assert type(made(tg.tensor([2.0]))) is Pair and made(tg.tensor([2.0])).second.item() == 4


@pytest.mark.parametrize("made", [export.ExportedProgram.module, compiled])
def test_dicts_are_taken_in_any_order(made):
    def difference(d, *, e):
        return d["a"] - d["b"]["x"] + e["q"]

    one, two, three = tg.tensor([1.0]), tg.tensor([2.0]), tg.tensor([3.0])
    module = made(export.export(Of(difference), ({"b": {"x": one}, "a": two},), {"e": {"q": three, "r": one}}))
    assert module({"a": one, "b": {"x": three}}, e={"r": one, "q": two}).item() == 0
    with pytest.raises((ValueError, TypeError)):
        module({"a": one, "c": {"x": three}}, e={"r": one, "q": two})


def test_arguments_are_called_as_pytorch_calls_them():
    def total(x, *args, **more):
        return x + args[0] * args[1] + more["z"]

    program = export.export(Of(total), (tg.ones(2),) * 3, {"z": tg.ones(2)})
    assert list(program.graph_signature.user_inputs) == ["args_0", "args_1", "args_2", "z"]


class Boxed(nn.Module):
    def forward(self, box, *, more):
        assert type(box) is type(more) is Box
        return Box(box.inside["a"] * more.inside + box.inside["b"])


@pytest.mark.parametrize("made", [export.ExportedProgram.module, compiled, export.unflatten])
def test_arguments_are_of_classes_that_are_registered(made, box):
    x = tg.ones(2)
    program = export.export(Boxed(), (Box({"a": x, "b": x}),), {"more": Box(x)})
    assert [n.name for n in program.graph.find_nodes(op="placeholder")] == ["box_0_a", "box_0_b", "more_0"]
    module = made(program)
    assert module(Box({"a": x * 2, "b": x}), more=Box(x * 3)).inside.tolist() == [7, 7]
    with pytest.raises((TypeError, ValueError), match="nested as"):
        module(Box({"a": x, "c": x}), more=Box(x))
    with pytest.raises((TypeError, ValueError), match="nested as"):
        module((x,), more=Box(x))


def test_a_file_has_arguments_of_registered_classes_as_tuples(box):
    x, room = tg.ones(2), io.BytesIO()
    export.save(export.export(Boxed(), (Box({"a": x, "b": x}),), {"more": Box(x)}), room)
    room.seek(0)
    assert export.load(room).module()(({"b": x, "a": x * 2},), more=(x * 3,))[0].tolist() == [7, 7]


def test_names_of_arguments_may_be_names_of_python():
    class Named(nn.Module):
        def forward(self, max, input):
            return max + input.max()

    for made in (export.ExportedProgram.module, compiled):
        module = made(export.export(Named(), (tg.ones(2),), {"input": tg.ones(2)}))
        assert module(tg.ones(2), input=tg.tensor([1.0, 3.0])).tolist() == [4, 4]


def test_results_of_compiled_functions_are_of_their_types(box):
    def results(x):
        return Pair(x + 1, OrderedDict(b=x, a=None)), Box(x * 2)

    handed = tg.compile(results, backend=lambda module, inputs: module.forward)
    for made in (tg.compile(results), tg.compile(results, fullgraph=True), handed):
        for _ in range(2):
            pair, boxed = made(tg.ones(2))
            assert type(pair) is Pair and type(pair.second) is OrderedDict and boxed.inside.tolist() == [2, 2]
    x = tg.zeros(2)
    written = tg.compile(lambda x: Pair(x.add_(1), 2), fullgraph=True)(x)
    assert written.first is x and type(written) is Pair


# ---- within other programs -----------------------------------------------------------------------------------------


class Worded(tg.nn.Module):
    def forward(self, x, mode):
        return x + 1 if mode == "a" else x - 1


class Sized(tg.nn.Module):
    def forward(self, x):
        return x * x.shape[0]


def recompiled(module, *args):
    made = tg.export.export(module, args).module()
    made.recompile()
    return made


def test_a_word_is_asked_for_where_the_module_is_compiled_or_unflattened():
    x = tg.ones(2)
    compiled = tg.compile(recompiled(Worded(), x, "a"))
    flat = tg.export.unflatten(tg.export.export(Worded(), (x, "a")))
    for program in (compiled, flat):
        assert program(x, "a").tolist() == [2.0, 2.0]
        for other in ("b", False, None):
            with pytest.raises(AssertionError, match="exported for 'a'"):
                program(x, other)


def test_sizes_are_asked_for_where_the_module_is_compiled_or_traced():
    module, x = recompiled(Sized(), tg.ones(4, 2)), tg.ones(4, 2)
    for program in (tg.compile(module), tg.jit.trace(module, (x,))):
        assert tg.equal(program(x), x * 4)
        with pytest.raises(AssertionError, match="exported for 4"):
            program(tg.ones(6, 2))


def test_a_class_that_is_not_registered_is_refused_as_a_result():
    class Held:
        pass

    class Net(tg.nn.Module):
        def forward(self, x):
            held = Held()
            held.x = x + 1
            return held

    with pytest.raises(RuntimeError, match="class Held, which holds tensors.*register_pytree_node"):
        tg.export.export(Net(), (tg.ones(2),))


def test_a_program_with_a_named_tuple_among_its_arguments_is_saved():
    class Net(tg.nn.Module):
        def forward(self, pair, x):
            return pair[0] + pair[1] * x

    x = tg.ones(2)
    program = export.export(Net(), (Pair(x, x * 2), x))
    with pytest.raises(ValueError, match="exported for TreeSpec"):
        program.module()((x, x), x)
    file = io.BytesIO()
    export.save(program, file)
    file.seek(0)
    loaded = export.load(file).module()
    for given in (Pair(x, x), (x, x)):
        assert loaded(given, x).tolist() == [2.0, 2.0]
    assert program.module()(Pair(x, x), x).tolist() == [2.0, 2.0]
