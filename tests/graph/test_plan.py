"""What holds of plans: who shares memory, what is guarded, what an error says, what is given back."""

import signal
import threading

import pytest
from collecting import collect
from tinygrad_ext.core.data.storage import memory_stats

import tinygrad_ext as tg
from tests.helpers.graphs import everything, same_bits
from tests.helpers.plans import agree, graph, line
from tinygrad_ext.graph import interpret
from tinygrad_ext.graph.primitives import GuardFailed

CHAIN = """\
graph chain(%p: Tensor, %q: Tensor) {
  %1: Tensor = aten::exp(%p)  # model.py:1 in forward
  %2: Tensor = aten::mul.Tensor(%1, %q)  # model.py:2 in forward
  %3: Tensor = aten::tanh(%p)
  %4: Tensor = aten::add.Tensor(%2, %3, 1)  # model.py:3 in forward
  %5: Tensor = aten::mul.Tensor(%q, %q)
  %6: Tensor = aten::sub.Tensor(%4, %5, 1)
  return %6
}"""


# ---- groups and memory ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 7, 1023, 1024, 1025, 5000, 70000])
def test_a_chain_is_one_instruction_without_memory_of_its_own(n):
    g = graph(CHAIN)
    agree(g, tg.randn(n), tg.randn(n))
    plan = g.plan(tg.randn(n), tg.randn(n))
    assert [line.kind for line in plan.lines()] == ["TILE"] * (n > 0)
    assert plan.arena_bytes == 0


def test_a_number_of_threads_changes_no_bit():
    g, p, q = graph(CHAIN), tg.randn(300_000), tg.randn(300_000)
    before = tg.get_num_threads()
    try:
        tg.set_num_threads(1)
        (alone,), _ = g.execute([p, q])
        tg.set_num_threads(3)
        (together,), _ = g.execute([p, q])
    finally:
        tg.set_num_threads(before)
    assert same_bits(alone, together)


def test_a_group_reads_repeated_transposed_and_single_elements():
    body = [
        "Tensor = aten::add.Tensor(%x, %y, 2)",
        "Tensor = aten::mul.Tensor(%0, %z)",
        "Tensor = aten::sub.Tensor(%1, %w, 1)",
    ]
    g = line(body, "%x: Tensor, %y: Tensor, %z: Tensor, %w: Tensor")
    x = tg.randn(70, 33)
    agree(g, x, tg.randn(33), tg.randn(70, 1), tg.tensor(3.0))
    agree(g, x, tg.randn(33, 70).t(), tg.randn(70, 66)[:, ::2], tg.randn(()))
    agree(g, x.t(), tg.randn(70), tg.randn(1, 70), tg.randn(70, 33).t())
    assert len(g.plan(x, tg.randn(33), tg.randn(70, 1), tg.tensor(3.0)).lines()) == 1


def test_a_group_does_not_read_elements_that_it_has_yet_to_make():
    g = line(["Tensor = aten::exp(%x)", "Tensor = aten::t(%0)", "Tensor = aten::add.Tensor(%0, %1, 1)"])
    agree(g, tg.randn(50, 50))


def test_values_in_a_group_may_have_several_dtypes():
    body = [
        "Tensor = aten::gt.Tensor(%x, 0)",
        "Tensor = aten::_to_copy(%x, int64, None, None, None, False, None)",
        "Tensor = aten::mul.Tensor(%1, %0)",
        "Tensor = aten::add.Tensor(%2, 0.5, 1)",
        "Tensor = aten::where.self(%0, %3, %x)",
        "Tensor = aten::_to_copy(%4, bfloat16, None, None, None, False, None)",
        "Tensor = aten::mul.Tensor(%5, %x)",
    ]
    g = line(body)
    agree(g, tg.randn(3000))
    assert [i.kind for i in g.plan(tg.randn(3000)).lines()] == ["TILE"]


@pytest.mark.parametrize("dtype", [tg.float64, tg.complex64, tg.int64, tg.int16])
def test_wider_results_do_not_lie_over_a_part_of_what_they_are_made_of(dtype):
    def program(x):
        return (x + x)[0].to(dtype).cumsum(0), (x + x)[1].to(dtype) * 2

    for n in (3, 5000):
        x = tg.arange(2.0 * n).reshape(2, n)
        assert all(map(tg.equal, tg.jit.trace(program, (x,), check_trace=False)(x), program(x)))


def test_many_values_are_parted_into_groups_that_fit():
    body = ["Tensor = aten::exp(%x)"] + [f"Tensor = aten::add.Tensor(%{i}, {i}.5, 1)" for i in range(300)]
    agree(line(body), tg.randn(2000))


def test_steps_between_two_groups_part_only_what_needs_them():
    body = [
        "Tensor = aten::exp(%x)",
        "Tensor = aten::sum.dim_IntList(%0, [0], False, None)",
        "Tensor = aten::mul.Tensor(%x, %x)",
        "Tensor = aten::add.Tensor(%2, %0, 1)",
        "Tensor = aten::mul.Tensor(%3, %1)",
    ]
    g = line(body)
    agree(g, tg.randn(40, 30))
    assert [i.kind for i in g.plan(tg.randn(40, 30)).lines()] == ["TILE", "RAW", "TILE"]


def test_places_in_the_arena_are_shared():
    body = ["Tensor = aten::softmax.int(%x, 1, None)"] + [
        f"Tensor = aten::softmax.int(%{i}, {i % 2}, None)" for i in range(8)
    ]
    g, x = line(body), tg.randn(64, 64)
    agree(g, x)
    (routine,) = g.plan(x).parts
    assert 64 * 64 * 4 <= routine.arena_bytes <= 2 * 64 * 64 * 4 < routine.sum_bytes


def test_results_are_memory_of_their_own_and_the_last_call_s_stay():
    g, x = line(["Tensor = aten::exp(%x)"]), tg.zeros(3)
    (first,), _ = g.execute([x])
    (second,), _ = g.execute([x + 1])
    assert first.tolist() == [1, 1, 1] and second.data_ptr() != first.data_ptr()


def test_a_result_may_be_an_input_a_view_of_one_or_part_of_another_result():
    g = line(
        ["Tensor = aten::t(%x)", "Tensor = aten::exp(%x)", "Tensor = aten::select.int(%1, 0, 1)"],
        returned="%x, %0, %1, %2, %1",
    )
    x = tg.randn(3, 4)
    (same, turned, exp, row, again), _ = g.execute([x])
    assert same is x and turned.data_ptr() == x.data_ptr() and row.data_ptr() == exp[1].data_ptr()
    assert again.data_ptr() == exp.data_ptr()
    agree(g, x)


def test_constant_results_are_made_anew():
    g = line(["Tensor = aten::tensor([1, 2], None, None, False, False)"])
    (a,), _ = g.execute([tg.zeros(1)])
    a.add_(5)
    assert g.execute([tg.zeros(1)])[0][0].tolist() == [1, 2]


def test_no_memory_stays_behind():
    graph(CHAIN).execute([tg.randn(9), tg.randn(9)])
    collect()
    before = memory_stats()["allocated"]
    for n in (10, 5000, 100):
        g = graph(CHAIN)
        g.execute([tg.randn(n), tg.randn(n)])
        agree(line(["Tensor = aten::softmax.int(%x, 0, None)", "Tensor = aten::softmax.int(%0, 0, None)"]), tg.randn(n))
        del g
    collect()  # the parts of a graph know each other
    assert memory_stats()["allocated"] == before


# ---- guards --------------------------------------------------------------------------------------------------------


def test_one_plan_for_a_geometry():
    g = graph(CHAIN)
    for shape in ((3,), (4,), (3,), (4,), (2, 2)):
        agree(g, tg.randn(shape), tg.randn(shape))
    agree(g, tg.randn(2, 2).t(), tg.randn(2, 2))
    agree(g, tg.randn(2, 2).double(), tg.randn(2, 2))
    assert g.explain().splitlines()[1:] == [
        "  plan 1: it is the first call",
        "  plan 2: %p has sizes [4], it had [3]",
        "  plan 3: %p has sizes [2, 2], it had [4]",
        "  plan 4: %p has strides [1, 2], it had [2, 1]",
        "  plan 5: %p is torch.float64, it was torch.float32",
    ]


def test_a_number_in_arithmetic_is_no_reason_to_plan_again():
    body = ["float = prim::mul(%a, 0.5)", "Tensor = aten::add.Tensor(%x, %0, %a)", "Tensor = aten::mul.Tensor(%1, %n)"]
    g = line(body, "%x: Tensor, %a: float, %n: int")
    for a, n in ((0.5, 3), (-1.25, 4), (0.1, -2)):
        agree(g, tg.arange(4.0), a, n)
    assert len(g.executor.misses) == 1


def test_a_number_that_sizes_depend_on_is_guarded_by_its_value():
    body = ["int = prim::mul(%n, 2)", "Tensor = aten::narrow(%x, 0, 0, %0)", "Tensor = aten::add.Tensor(%1, %n, 1)"]
    g = line(body, "%x: Tensor, %n: int")
    for n in (1, 2, 1, 3, 2):
        agree(g, tg.arange(9.0), n)
    assert len(g.executor.misses) == 3


def test_sizes_are_worked_out_while_planning():
    body = ["int = prim::size(%x, 0)", "int = prim::floordiv(%0, 2)", "Tensor = aten::reshape(%x, [2, %1])"]
    g = line(body)
    for n in (4, 6, 4):
        agree(g, tg.randn(n))


def test_the_default_dtype_is_guarded():
    g = line(["Tensor = aten::mul.Tensor(%x, 1.5)"])
    x = tg.arange(3)
    agree(g, x)
    tg.set_default_dtype(tg.float64)
    try:
        agree(g, x)
    finally:
        tg.set_default_dtype(tg.float32)


# ---- random numbers and state --------------------------------------------------------------------------------------


def test_draws_follow_each_other_from_the_generator_that_is_passed_in():
    g = graph("""\
graph f(%x: Tensor) {
  state %m: Tensor = buffer "mean"
  state %g: Generator = generator "default"
  %1: Tensor = aten::lerp.Scalar(%m, %x, 0.5)
  %2: Tensor, %h: Generator = aten::bernoulli(%x, %g)
  %3: Tensor, %k: Generator = aten::bernoulli(%x, %h)
  return %2, %3
  write "mean" = %1
  write "default" = %k
}""")
    x, mean, drawn = tg.full((100,), 0.5), tg.zeros(100), tg.Generator().manual_seed(3)
    before = drawn.get_state()
    agree(g, x, state=[mean, drawn])
    assert drawn.get_state().equal(before) and mean.sum() == 0
    assert not g.executor.boxed


def test_a_graph_with_every_construct_is_one_plan():
    g, inputs, state = everything()
    agree(g, *inputs, state=state)
    assert "in no plan" not in g.explain()
    kinds = {line.kind for line in g.plan(*inputs, state=state).lines()}
    assert {"LOOP", "TILE"} <= kinds and "BOXED" not in kinds


def test_draws_from_the_default_generator_are_eager_s():
    g = line(
        [
            "Tensor = aten::rand_like(%x, None, None, None, None, False, None, None)",
            "Tensor = aten::add.Tensor(%0, %x, 1)",
        ]
    )
    x = tg.zeros(100)
    for _ in range(2):
        tg.manual_seed(4)
        expected = [interpret.run(g, [x])[0] for _ in range(2)]
        tg.manual_seed(4)
        assert all(same_bits(g.execute([x])[0], e) for e in expected)
    assert not g.executor.boxed


# ---- errors --------------------------------------------------------------------------------------------------------


def test_sizes_that_do_not_fit_raise_eager_s_error_at_the_user_s_line():
    g = graph(CHAIN)
    agree(g, tg.randn(3), tg.randn(3))
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match(.|\n)*model.py:2 in forward"):
        g.execute([tg.randn(3), tg.randn(4)])
    agree(g, tg.randn(3), tg.randn(3))
    assert not g.executor.boxed


def test_an_element_that_fails_raises_eager_s_error_at_the_user_s_line():
    g = graph("""\
graph f(%x: Tensor, %y: Tensor) {
  %1: Tensor = aten::add.Tensor(%x, 1, 1)
  %2: Tensor = aten::remainder.Tensor(%1, %y)  # model.py:7 in forward
  return %2
}""")
    agree(g, tg.tensor([3, 4]), tg.tensor([2, 2]))
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError(.|\n)*model.py:7 in forward"):
        g.execute([tg.tensor([3, 4]), tg.tensor([2, 0])])
    agree(g, tg.tensor([3, 4]), tg.tensor([2, 2]))


def test_an_index_outside_raises_eager_s_error_at_the_user_s_line():
    g = graph("""\
graph f(%x: Tensor, %i: Tensor) {
  %1: Tensor = aten::index_select(%x, 0, %i)  # model.py:9 in forward
  return %1
}""")
    agree(g, tg.randn(4), tg.tensor([1, 2]))
    with pytest.raises(IndexError, match=r"model.py:9 in forward"):
        g.execute([tg.randn(4), tg.tensor([1, 9])])


def test_a_wrong_number_of_values_is_refused():
    with pytest.raises(TypeError, match="takes 2 values"):
        graph(CHAIN).execute([tg.randn(3)])


def test_a_long_plan_can_be_interrupted():
    """A signal's handler runs between two instructions, and what it raises comes out; the plan can be called again."""
    g = line(["Tensor = aten::cumsum(%x, 0, None)"] + [f"Tensor = aten::cumsum(%{i}, 0, None)" for i in range(400)])
    g.execute([tg.zeros(3)])
    big = tg.zeros(1 << 20)

    def stop(number, frame):
        raise InterruptedError("stopped")

    before = signal.signal(signal.SIGUSR1, stop)
    try:
        threading.Timer(0.05, signal.raise_signal, [signal.SIGUSR1]).start()
        with pytest.raises(InterruptedError, match="stopped"):
            for _ in range(1000):
                g.execute([big])
    finally:
        signal.signal(signal.SIGUSR1, before)
    agree(g, tg.ones(2))


def test_plans_that_hold_much_memory_go_when_others_are_made():
    g = line(["Tensor = aten::cumsum(%x, 0, None)", "Tensor = aten::cumsum(%0, 0, None)"])
    for n in range(1, 5):
        g.execute([tg.zeros((24 << 20) + n)])
    assert 1 <= len(g.executor.whole.runner.routines) <= 3


# ---- others at the same time ----------------------------------------------------------------------------------------


def test_threads_that_call_the_same_plan_do_not_disturb_each_other():
    g = line(["Tensor = aten::softmax.int(%x, 1, None)", "Tensor = aten::softmax.int(%0, 0, None)"])
    inputs = [tg.randn(300, 300) * i for i in range(4)]
    expected = [interpret.run(g, [x])[0] for x in inputs]
    wrong = []

    def work(x, e):
        for _ in range(20):
            if not same_bits(g.execute([x])[0], e):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_a_table_tells_what_runs():
    g = line(["Tensor = aten::exp(%x)", "Tensor = aten::sum.dim_IntList(%0, [0], False, None)"])
    plan = g.plan(tg.randn(10, 4))
    text = plan.table(profile=True)
    assert [i.kind for i in plan.lines()] == ["TILE", "RAW"] and "exp" in text and "sum" in text
    assert all(i.microseconds > 0 for i in plan.lines(profile=True))


# ---- what is not planned -------------------------------------------------------------------------------------------


def test_a_graph_with_effects_is_the_interpreter_s():
    g = graph("graph f(%x: Tensor) effects {\n  %1: Tensor = aten::add_.Tensor(%x, 1, 1)\n  return %x\n}")
    x = tg.zeros(2)
    assert g.execute([x])[0][0] is x and x.tolist() == [1, 1]
    assert "the graph has effects" in g.explain()


def test_what_a_program_decided_by_is_asked_while_planning_and_holds_for_the_plan():
    body = ["int = prim::size(%x, 0)", "Tensor = aten::exp(%x)"]
    g = line(body)
    node = g.make(g.block, "prim::guard", (g.nodes[0].output, 3, "model.py:2"), ())
    assert node.op == "prim::guard"
    agree(g.check(), tg.randn(3))
    with pytest.raises(GuardFailed, match="captured with 3, not 4, where model.py:2 depends on it"):
        g.execute([tg.randn(4)])
    agree(g, tg.randn(3))
    assert not g.executor.boxed and len(g.executor.misses) == 1


def test_what_no_plan_takes_is_told_as_boxed():
    g = line(["Tensor = aten::nonzero(%x)"])
    x = tg.tensor([0.0, 2.0])
    assert g.execute([x])[0][0].tolist() == [[1]]
    assert [i.kind for i in g.plan(x).lines()] == ["BOXED"]


def test_a_graph_may_have_thousands_of_states():
    names = [f"s{i}" for i in range(1500)]
    states = "\n".join(f'  state %{n}: Tensor = buffer "{n}"' for n in names)
    g = graph(f"graph f(%x: Tensor) {{\n{states}\n  %1: Tensor = aten::add.Tensor(%x, %s1499, 1)\n  return %1\n}}")
    values = [tg.tensor(float(i)) for i in range(1500)]
    assert g.execute([tg.ones(1)], values)[0][0].tolist() == [1500]
    assert [i.kind for i in g.plan(tg.ones(1), state=values).lines()] == ["TILE"]
