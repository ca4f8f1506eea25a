"""What a program writes to its arguments, and into their `.grad`, is there afterwards, as in eager mode."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.graph import Graph
from tinygrad_ext.jit.loaded import LoadedModule
from tinygrad_ext.jit.notes import check_notes


def add(x):
    x.add_(1)


def a_part(x):
    x[0].zero_()
    return x + 1


def twice(x):
    x.mul_(2)
    y = x.sum()
    x[1:] += y
    return y


def of_a_list(x):
    first, second = x, x.clone()
    second.add_(1)
    first.copy_(second * 2)
    return [second]


def by_out(x):
    tg.add(x, 3, out=x)


def through_a_view(x):
    x.view(-1)[::2].fill_(7)
    x.t().mul_(2)


def random(x):
    x.uniform_()
    return x * 2


def by_data(x):
    x.data = x * 3


@pytest.mark.parametrize(
    "program", [add, a_part, twice, of_a_list, by_out, through_a_view, random, by_data], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("rows", [2, 3])
def test_a_write_to_an_argument_is_there_afterwards(program, rows):
    traced = jit.trace(program, (tg.ones(2, 2),))
    assert Graph.parse(str(traced.graph)) == traced.graph
    for seed in range(3):
        x = tg.arange(rows * 2.0).view(rows, 2)
        y = x.clone()
        base, version = x.view(-1), x._version
        tg.manual_seed(seed)
        wanted = program(y)
        tg.manual_seed(seed)
        got = traced(x)
        assert x.equal(y) and base.equal(y.view(-1))
        assert x._version > version
        assert str(got) == str(wanted)
    assert traced.explain().startswith(f"{program.__name__}: 1 graph captured\n")


def test_arguments_in_lists_and_dicts():
    def f(batch, *, more):
        batch["x"].add_(batch["y"][0])
        more[1].zero_()
        return batch["x"].sum()

    def given():
        return ({"x": tg.ones(2), "y": (tg.full((2,), 2.0), None)},), {"more": [tg.ones(1), tg.ones(2)]}

    args, kwargs = given()
    traced = jit.trace(f, args, example_kwarg_inputs=kwargs)
    assert args[0]["x"].tolist() == [1, 1] and kwargs["more"][1].tolist() == [1, 1]  # tracing changes nothing
    for _ in range(2):
        assert traced(*args, **kwargs) == args[0]["x"].sum()
    assert args[0]["x"].tolist() == [5, 5] and kwargs["more"][1].tolist() == [0, 0]


def test_what_is_returned_after_it_was_written_to_is_the_argument_itself():
    count = tg.zeros(2)

    def f(x, y):
        return x.add_(1), {"y": [y, y.mul_(2)]}, count.add_(x)

    traced = jit.trace(f, (tg.ones(2), tg.ones(2)))
    for _ in range(2):
        x, y = tg.ones(2), tg.ones(2)
        a, b, c = traced(x, y)
        assert a is x and b["y"][0] is y and b["y"][1] is y and c is count
    assert x.tolist() == y.tolist() == [2, 2] and count.tolist() == [4, 4]
    only = jit.trace(lambda x: x.add_(1), (tg.ones(2),))
    assert only(x) is x


@pytest.mark.parametrize("grad", [None, 5.0], ids=["without", "with"])
def test_gradients_of_arguments(grad):
    def f(x, w):
        loss = (x * x * w).sum()
        loss.backward()
        return loss

    def given():
        x = tg.tensor([1.0, 2.0], requires_grad=True)
        x.grad = None if grad is None else tg.full((2,), grad)
        return x, tg.tensor([3.0, 4.0])

    traced = jit.trace(f, given())
    (x, w), (y, v) = given(), given()
    held = x.grad
    for _ in range(3):
        assert traced(x, w).equal(f(y, v)) and x.grad.equal(y.grad)
        assert held is None or x.grad is held
        held = x.grad
    x.grad = y.grad = None
    assert traced(x, w).equal(f(y, v)) and x.grad.equal(y.grad)


def test_a_program_that_takes_the_gradient_of_an_argument_away():
    def f(x):
        x.grad = None
        (x * 3).sum().backward()

    x = tg.ones(2, requires_grad=True)
    x.grad = tg.ones(2)
    traced = jit.trace(f, (x,))
    assert x.grad.tolist() == [1, 1]
    for _ in range(3):
        traced(x)
        assert x.grad.tolist() == [3, 3]


def test_where_what_is_written_to_lies_in_memory_of_another_argument_the_program_itself_runs():
    def f(x, y):
        x.mul_(2)
        return y * 2

    for part in (lambda x: x, lambda x: x.view(4), lambda x: x[:3]):
        whole, wanted = tg.tensor([1.0, 2.0, 3.0, 4.0]), tg.tensor([1.0, 2.0, 3.0, 4.0])
        first, of_wanted = (t if len(part(t)) == 4 else t[1:] for t in (whole, wanted))
        traced = jit.trace(f, (first, part(whole)))  # with clones of its examples
        assert whole.tolist() == [1, 2, 3, 4]
        for call in (traced, traced, lambda x, y: traced(x, y=y)):
            assert call(first, part(whole)).tolist() == f(of_wanted, part(wanted)).tolist()
            assert whole.tolist() == wanted.tolist()
        assert traced(first.clone(), part(whole).clone()).tolist() == (part(whole) * 2).tolist()
        assert whole.tolist() == wanted.tolist() and len(traced._runner.graphs) == 1
    x = tg.ones(4)
    compiled = tg.compile(f)
    traced = jit.trace(f, (x, x))
    with pytest.raises(RuntimeError, match="written to, and another one that the program uses lies in the same"):
        tg.compile(f, fullgraph=True)(x, x)
    assert compiled(x, x).tolist() == [4, 4, 4, 4] and x.tolist() == [2, 2, 2, 2]  # runs as it was written
    whole = tg.ones(8)
    assert traced(whole[:4], whole[4:]).tolist() == [2, 2, 2, 2] and whole.tolist() == [2] * 4 + [1] * 4
    reads = jit.trace(lambda x, y: x + y, (x, x))
    assert reads(x, tg.ones(4)).tolist() == [3, 3, 3, 3]


def test_an_argument_in_the_memory_of_what_the_program_writes_to_is_seen():
    table = tg.zeros(3, 2)

    def f(x):
        table.add_(1)
        return x * 2

    traced = jit.trace(f, (tg.ones(2),))
    assert traced(tg.ones(2)).tolist() == [2, 2]
    assert table.sum() == 6 and traced(table[1]).tolist() == [4, 4] and table.sum() == 12
    writes = jit.trace(lambda x: x.add_(table.sum()), (tg.ones(2),))
    assert writes(table[0]).tolist() == [14, 14] and table.sum() == 36


def test_what_cannot_be_right_is_refused():
    w = tg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="keeps the history of what was written to it"):
        jit.trace(lambda x: x.add_(w) is None, (tg.ones(2),))
    with pytest.raises(RuntimeError, match="a view of the argument x, which was written to, is returned"):
        jit.trace(lambda x: x.add_(1)[0], (tg.ones(2),))
    with pytest.raises(RuntimeError, match="is no leaf, so its gradient goes on outside"):
        jit.trace(lambda x: (x * x).sum().backward(), (w * 2,))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        jit.trace(add, (w,))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        jit.trace(add, (tg.ones(2, 2),))(tg.ones(1).expand(2, 2))
    traced = jit.trace(lambda x: (x * x).sum().backward(), (w,))
    with pytest.raises(RuntimeError, match="is no leaf"):
        traced(w * 2)


def filed(traced):
    file = io.BytesIO()
    jit.save(traced, file)
    return jit.load(io.BytesIO(file.getvalue()))


@pytest.mark.parametrize(
    "program", [add, a_part, twice, of_a_list, by_out, through_a_view, random, by_data], ids=lambda f: f.__name__
)
def test_a_write_to_an_argument_is_there_after_a_program_from_a_file(program):
    loaded = filed(jit.trace(program, (tg.ones(2, 2),)))
    for rows in (2, 3):
        for again in (loaded, filed(loaded)):
            x = tg.arange(rows * 2.0).view(rows, 2)
            y = x.clone()
            tg.manual_seed(rows)
            expected = program(x)
            tg.manual_seed(rows)
            found = again(y)
            assert y.tolist() == x.tolist()
            assert repr(found) == repr(expected)


def in_nests(x, rows):
    x["a"].mul_(2)
    rows[1].add_(x["a"])
    return {"same": rows[1], "new": x["a"] + 1}


def test_what_a_program_from_a_file_returns_is_the_argument_that_it_wrote_to():
    loaded = filed(jit.trace(in_nests, ({"a": tg.ones(2)}, [tg.ones(2), tg.zeros(2)])))
    x, rows = {"a": tg.tensor([1.0, 2.0])}, [tg.ones(2), tg.zeros(2)]
    found = loaded(x, rows)
    assert found["same"] is rows[1] and rows[1].tolist() == [2, 4] and x["a"].tolist() == [2, 4]
    assert found["new"].tolist() == [3, 5] and rows[0].tolist() == [1, 1]


def test_a_program_from_a_file_keeps_its_state_and_counts_beside_what_it_writes_to():
    norm = tg.nn.BatchNorm1d(2)

    class Both(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = norm

        def forward(self, x, total):
            y = self.norm(x)
            total.add_(y.detach().square().sum())
            return y

    loaded = filed(jit.trace(Both(), (tg.randn(4, 2), tg.zeros(1)), check_trace=False))
    before, total = loaded.norm.running_mean.clone(), tg.zeros(1)
    loaded(tg.randn(4, 2) + 3, total)
    assert total.item() > 0 and not tg.equal(before, loaded.norm.running_mean)
    assert loaded.norm.num_batches_tracked.item() == norm.num_batches_tracked.item() + 1


def test_memory_that_two_arguments_share_is_not_written_to_from_a_file():
    loaded = filed(jit.trace(lambda x, y: x.add_(y), (tg.ones(2), tg.ones(2))))
    x = tg.ones(4)
    with pytest.raises(RuntimeError, match="is written to, and another one .* lies in the same memory"):
        loaded(x[:2], x[2:])
    assert loaded(tg.ones(2), tg.ones(2)).tolist() == [2, 2]


def test_what_no_file_can_write_to_is_refused():
    w = tg.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="writes the gradient of its argument into.*Let it return the gradient"):
        filed(jit.trace(lambda x: (x * x).sum().backward(), (w,)))
    with pytest.raises(RuntimeError, match="an entry of a dict whose key is neither a text nor a number"):
        filed(jit.trace(lambda x: x[1.5].add_(1), ({1.5: tg.ones(2)},)))


def test_examples_are_not_kept_of_a_program_that_writes_to_its_arguments(tmp_path):
    traced = jit.trace(add, (tg.ones(2),))
    with pytest.raises(RuntimeError, match="Save it without examples"):
        jit.save(traced, tmp_path / "a.tgx", examples=[(tg.ones(2),)])


def test_notes_about_written_arguments_are_judged():
    program = filed(jit.trace(lambda x: x.add_(1), (tg.ones(2),))).program()
    note = program.notes["forward"]
    (state,) = note["arguments"]
    for odd in (
        {"arguments": {"other": [0]}},
        {"arguments": {state: []}},
        {"arguments": [state]},
        {"returned": [[0]]},
        {"arguments": {state: [1.5]}},
        {"returned": [[[], "other"]]},
        {"arguments": {state: [0] * 200}},
    ):
        program.notes["forward"] = {**note, **odd}
        with pytest.raises(ValueError, match="does not fit its graph"):
            check_notes(program)
    for path in ([7], [0, 0], ["x"], [-1]):
        program.notes["forward"] = {**note, "arguments": {state: path}}
        check_notes(program)
        with pytest.raises(RuntimeError, match="which is no tensor among these arguments"):
            LoadedModule(program)(tg.ones(2))
    program.notes["forward"] = {**note, "returned": [[[3, "a"], state]]}
    assert LoadedModule(program)(tg.ones(2)).tolist() == [2, 2]


def test_compile_writes_to_arguments():
    compiled = tg.compile(add, fullgraph=True)
    x = tg.ones(2)
    for _ in range(3):
        compiled(x)
    assert x.tolist() == [4, 4]
