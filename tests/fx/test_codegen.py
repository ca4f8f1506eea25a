"""The frame of a graph's code: CodeGen, transformers of the body, and what they do to copies and interpreters."""

import copy
import pickle

import pytest

import tinygrad_ext as tg
from tests.helpers import fx_programs as programs
from tinygrad_ext import fx


class _Listed:
    """One list of arguments, and a dict for a result."""

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        first = super().gen_fn_def(["given : Listed"], maybe_return_annotation)
        return f"{first}\n    [{', '.join(free_vars)}] = given"

    def generate_output(self, output_args, *, repr_fn=repr, **more):
        return f"return dict(result={repr_fn(output_args)})"

    def process_inputs(self, given):
        return given

    def process_outputs(self, outputs):
        return {"result": outputs}

    def additional_globals(self):
        return [("Listed", list)]


class Listed(_Listed, tg.fx.CodeGen):
    pass


def listed(fx):
    return Listed() if fx is tg.fx else type("Listed", (_Listed, fx.CodeGen), {})()


def told(T, fx):
    """What a graph with such a frame gives in every way to run it."""
    made = fx.symbolic_trace(lambda x, y: T.relu(x) * y + 1)
    made.graph.set_codegen(listed(fx))
    made.recompile()
    x, y = T.tensor([-1.0, 2.0]), T.tensor([3.0, 4.0])
    again = fx.Transformer(made).transform()
    inside = made.graph.process_inputs([x, y])
    plain = fx.Interpreter(made).run(*inside, enable_io_processing=False)
    results = [made([x, y]), again([x, y]), copy.deepcopy(made)([x, y]), fx.Interpreter(made).run([x, y])]
    results.append(made.graph.process_outputs(plain))
    return [programs.plain(r) for r in results], made.code.strip().replace("tinygrad_ext.", "torch.")


def test_a_frame_of_ones_own():
    results, code = told(tg, tg.fx)
    assert results == [{"result": programs.plain(tg.tensor([1.0, 9.0]))}] * 5
    assert code.split("\n")[:2] == ["def forward(self, given : Listed):", "    [x, y] = given"]
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    assert (results, code) == told(torch, pytest.importorskip("torch.fx"))


def test_a_frame_goes_with_a_pickle():
    made = tg.fx.symbolic_trace(lambda x, y: x - y)
    made.graph.set_codegen(Listed())
    made.recompile()
    again = pickle.loads(pickle.dumps(made))
    assert again([tg.ones(1), tg.zeros(1)])["result"].tolist() == [1.0] and again.code == made.code


def test_a_frame_that_writes_the_result_alone():
    class Named(tg.fx.CodeGen):
        def generate_output(self, output_args):
            return f"return ({output_args}, 'named')"

    made = tg.fx.symbolic_trace(lambda x: x + 1)
    made.graph.set_codegen(Named())
    made.recompile()
    assert made(tg.ones(1))[1] == "named"


def transformed(T, fx):
    """The code while transformers of the body come and go."""
    seen, steps = [], []
    made = fx.symbolic_trace(lambda x: T.relu(x).exp())

    def note(before, name):
        return lambda body: [f"note('{name}')\n", *(before(body) if before else body)]

    def step():
        made.recompile()
        made(T.ones(1))
        steps.append((made.code.strip().replace("tinygrad_ext.", "torch."), list(seen)))
        seen.clear()

    class Seen(fx.CodeGen):
        def additional_globals(self):
            return [("note", seen.append)]

    made.graph.set_codegen(Seen())
    made.graph.on_generate_code(lambda before: note(before, "one"))
    step()
    with made.graph.on_generate_code(lambda before: note(before, "two")):
        step()
        with pytest.raises(KeyError), made.graph.on_generate_code(lambda before: note(None, "three")):
            step()
            raise KeyError
        step()
    step()
    return steps


def test_bodies_are_transformed():
    found = transformed(tg, tg.fx)
    assert [names for _, names in found] == [["one"], ["two", "one"], ["three"], ["two", "one"], ["one"]]
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    assert found == transformed(torch, pytest.importorskip("torch.fx"))


def test_the_root_has_the_name_that_is_asked_for():
    class Net(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = tg.nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x)

    made = tg.fx.symbolic_trace(Net()).graph.python_code("root")
    names = {"root": Net(), **made.globals}
    exec(made.src, names)
    assert names["forward"](None, tg.ones(2)).equal(names["root"](tg.ones(2)))


def annotated(x: tg.Tensor, y: int = 3, z: list[int] = ()) -> tg.Tensor:
    return x + y


def test_annotations_are_told_by_their_names():
    code = fx.symbolic_trace(annotated).code
    assert "x : tinygrad_ext.Tensor, y : int = 3, z : list" in code and "-> tinygrad_ext.Tensor:" in code
    assert fx.symbolic_trace(annotated)(tg.ones(2), 1).tolist() == [2, 2]
