"""Counts of floating-point operations: by hand, and beside PyTorch's where it counts the same."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula

F = tg.nn.functional

# name: function of the library, sizes of the tensors, multiplications of the forward
CASES = {
    "linear": (lambda T, x, w: T.nn.functional.linear(x, w), ((2, 3), (4, 3)), 24),
    "matmul": (lambda T, a, b: a @ b, ((2, 3, 4), (4, 5)), 120),
    "matmul of batches that broadcast": (lambda T, a, b: a @ b, ((5, 1, 2, 3), (7, 3, 4)), 5 * 7 * 24),
    "conv1d of one signal": (lambda T, x, w: T.nn.functional.conv1d(x, w), ((4, 8), (6, 4, 3)), 6 * 6 * 12),
    "bmm": (lambda T, a, b: T.bmm(a, b), ((2, 3, 4), (2, 4, 5)), 120),
    "addmm": (lambda T, *a: T.addmm(*a), ((3, 5), (3, 4), (4, 5)), 60),
    "baddbmm": (lambda T, *a: T.baddbmm(*a), ((2, 3, 5), (2, 3, 4), (2, 4, 5)), 120),
    "conv1d": (lambda T, x, w: T.nn.functional.conv1d(x, w), ((2, 4, 8), (6, 4, 3)), 2 * 6 * 6 * 12),
    "conv2d": (
        lambda T, x, w: T.nn.functional.conv2d(x, w, stride=2, padding=1),
        ((2, 4, 8, 8), (6, 4, 3, 3)),
        2 * 16 * 6 * 36,
    ),
    "conv_transpose2d": (
        lambda T, x, w: T.nn.functional.conv_transpose2d(x, w, stride=2),
        ((1, 3, 8, 8), (3, 4, 3, 3)),
        64 * 108,
    ),
    "element by element": (lambda T, a, b: a * b + a.exp(), ((3, 4), (3, 4)), 0),
}


def counted(T, counter, name, backward):
    function, sizes, _ = CASES[name]
    tensors = [T.randn(size, requires_grad=True) for size in sizes]
    with counter(display=False) as found:
        result = function(T, *tensors)
        if backward:
            result.sum().backward()
    return found.get_total_flops()


@pytest.mark.parametrize("name", CASES)
def test_counts_are_twice_the_multiplications_and_three_times_that_with_backward(name):
    forward = 2 * CASES[name][2]
    assert counted(tg, FlopCounterMode, name, False) == forward
    assert counted(tg, FlopCounterMode, name, True) == 3 * forward


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_counts_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode
    for backward in (False, True):
        assert counted(tg, FlopCounterMode, name, backward) == counted(torch, theirs, name, backward)


@pytest.mark.parametrize("kind, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_count_the_products_of_all_steps(kind, gates):
    layer = getattr(tg.nn, kind)(4, 5)
    with FlopCounterMode(display=False) as counter:
        layer(tg.randn(3, 2, 4))[0].sum().backward()
    inputs, states = 2 * 6 * gates * 5 * 4, 2 * 6 * gates * 5 * 5
    assert counter.get_total_flops() == 2 * inputs + 3 * states


def test_attention_counts_its_two_products_whether_it_keeps_the_scores_or_not():
    for needs in (False, True):
        query, key = tg.randn(2, 4, 8, 16, requires_grad=needs), tg.randn(2, 4, 9, 16)
        with FlopCounterMode(display=False) as counter:
            F.scaled_dot_product_attention(query, key, key)
        assert counter.get_total_flops() == 2 * 2 * 2 * 4 * 8 * 9 * 16


def test_attention_over_long_sequences_counts_its_backward_pass():
    query = tg.randn(1, 2, 300, 16, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        F.scaled_dot_product_attention(query, query, query).sum().backward()
    assert counter.get_total_flops() == 7 * 2 * 2 * 300 * 300 * 16


def test_modules_have_what_they_and_their_parts_computed_backward_included(capsys):
    class Net(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = tg.nn.Sequential(tg.nn.Linear(3, 4), tg.nn.Linear(4, 5))

        def forward(self, x):
            return self.layers(x)

    with FlopCounterMode(depth=2) as counter:
        Net()(tg.ones(2, 3)).sum().backward()
        tg.ones(2, 2) @ tg.ones(2, 2)
    found = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    first, second = 2 * 2 * 3 * 4 * 2, 3 * 2 * 2 * 4 * 5
    assert found == {
        "Global": first + second + 16, "Net": first + second, "Net.layers": first + second,
        "Net.layers.0": first, "Net.layers.1": second,
    }  # fmt: skip
    printed = capsys.readouterr().out
    assert "Net.layers" in printed and "aten.linear" in printed and "Net.layers.0" not in printed
    assert "Net.layers.0" in counter.get_table()
    assert counter.get_flop_counts()["Net.layers.0"][tg.ops.aten.linear] == first // 2
    with counter:
        pass
    assert counter.get_total_flops() == 0


def test_what_is_not_needed_warns():
    with pytest.warns(UserWarning, match="mods is not needed"):
        FlopCounterMode(tg.nn.Linear(1, 1))


@pytest.fixture
def doubling():
    """An op of a library, and its packet."""

    with tg.library.Library("test_flops", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeExplicitAutograd")
        yield tg.ops.test_flops.twice
        flop_registry.pop(tg.ops.test_flops.twice, None)


@pytest.mark.parametrize("raw", [False, True])
def test_ops_count_by_a_formula_that_is_registered(doubling, raw):
    seen = []

    @register_flop_formula([doubling], get_raw=raw)
    def count(x, *, out_shape=None, out_val=None):
        seen.append((type(x), out_shape, type(out_val)))
        return x.numel() + 5

    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_flop_formula(doubling)(count)
    with pytest.raises(ValueError, match="expected each target to be an op"):
        register_flop_formula(len)(count)

    class Net(tg.nn.Module):
        def forward(self, x):
            return doubling(x)

    with FlopCounterMode(display=False) as counter:
        tg.nn.Sequential(Net())(tg.ones(2, 3))
        doubling(tg.ones(2, 3)) @ tg.ones(3, 4)
    counts = counter.get_flop_counts()
    assert counts["Sequential.0"] == counts["Sequential"] == {doubling: 11}
    assert counts["Global"] == {doubling: 22, tg.ops.aten.matmul: 48}
    assert seen == ([(tg.Tensor, None, tg.Tensor)] if raw else [(tg.Size, (2, 3), type(None))]) * 2


def test_a_mapping_takes_the_place_of_what_is_counted():
    counts = {tg.ops.aten.mm: lambda a, b, out_shape: a[0] + b[1]}
    with FlopCounterMode(display=False, custom_mapping=counts) as counter:
        tg.ones(2, 3).mm(tg.ones(3, 4))
    assert counter.get_flop_counts()["Global"] == {tg.ops.aten.mm: 6}


def test_blocks_that_raise_print_nothing_and_leave_no_hooks(capsys):
    with pytest.raises(ZeroDivisionError), FlopCounterMode():
        1 / 0
    assert capsys.readouterr().out == ""
    assert not tg.nn.hooks._global_forward_hooks and not tg.nn.hooks._global_forward_pre_hooks


def test_padding_by_a_word_counts_as_the_numbers_do():
    x, w = tg.randn(2, 3, 8, 8), tg.randn(4, 3, 3, 3)
    for word, number in (("same", 1), ("valid", 0)):
        totals = []
        for padding in (word, number):
            with FlopCounterMode(display=False) as found:
                F.conv2d(x, w, padding=padding)
            totals.append(found.get_total_flops())
        assert totals[0] == totals[1] > 0


def test_a_formula_stands_for_all_that_its_op_computes():
    aten, one = tg.ops.aten, lambda *args, **kwargs: 1
    layer, x = tg.nn.Linear(3, 4), tg.ones(2, 3)
    for op, run in (
        (aten.mm, lambda: x @ tg.ones(3, 4)),
        (aten.bmm, lambda: tg.ones(2, 2, 3) @ tg.ones(2, 3, 4)),
        (aten.addmm, lambda: layer(x)),
    ):
        with FlopCounterMode(display=False, custom_mapping={op: one}) as counter:
            run()
        assert counter.get_total_flops() == 1
