"""In-place ops: gradients through leaves' clones, views and bases; versions; refusals."""

import pytest

import tinygrad_ext as tg


def leaf(*values):
    return tg.tensor(list(values), dtype=tg.float64, requires_grad=True)


def test_inplace_on_an_intermediate():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.mul_(x).add_(1)
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_write_to_a_view_reaches_the_base():
    x = leaf(1.0, 2.0, 3.0)
    base = x * 2
    base[1].mul_(10)
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 20.0, 2.0]


def test_write_to_the_base_reaches_a_view_taken_before():
    x = leaf(1.0, 2.0, 3.0)
    base = x * 2
    tail = base[1:]
    base.mul_(5)
    tail.sum().backward()
    assert x.grad.tolist() == [0.0, 10.0, 10.0]
    assert tail.grad_fn is not None


def test_write_to_one_view_reaches_another():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    base = x * 1
    left, right = base[:3], base[1:]
    left.mul_(7)
    right.sum().backward()
    assert x.grad.tolist() == [0.0, 7.0, 7.0, 1.0]


def test_views_of_views():
    x = tg.ones(4, 4, dtype=tg.float64, requires_grad=True)
    base = x * 1
    base[1:3][:, 1:3].mul_(3)
    base.sum().backward()
    want = [[1.0] * 4, [1.0, 3.0, 3.0, 1.0], [1.0, 3.0, 3.0, 1.0], [1.0] * 4]
    assert x.grad.tolist() == want


def test_assignment_of_a_tracked_value():
    x, v = leaf(1.0, 2.0, 3.0), leaf(10.0, 20.0)
    y = x * 1
    y[:2] = v * v
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 6.0]
    assert v.grad.tolist() == [4 * 10.0**3, 4 * 20.0**3]


def test_second_derivative_through_a_write_to_a_view():
    def f(x):
        y = x * x
        y[0] = y[1].clone() * x[0]  # without the clone y[1] would be saved and then written to
        y[1:].mul_(x[2])
        return (y * y).sum()

    assert tg.autograd.gradcheck(f, (leaf(0.7, -1.2, 0.5),))
    assert tg.autograd.gradgradcheck(f, (leaf(0.7, -1.2, 0.5),))


def test_write_that_makes_an_untracked_tensor_tracked():
    x = leaf(2.0)
    buffer = tg.zeros(3, dtype=tg.float64)
    buffer[1:2] = x
    assert buffer.requires_grad
    (buffer * 5).sum().backward()
    assert x.grad.tolist() == [5.0]


def test_versions_count_writes_and_are_shared_by_views():
    t = tg.zeros(4)
    v = t[1:]
    start = t._version
    v.add_(1)
    t.mul_(2)
    assert t._version == v._version == start + 2
    assert t.detach()._version == start + 2
    d = t.data
    d.add_(1)
    assert t._version == start + 2


def test_saved_tensor_written_later_names_both_lines():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
        z.sum().backward()
    text = str(raised.value)
    assert "Saved for MulBackward0" in text and text.count("test_inplace.py:") == 2
    assert "is at version 1; expected version 0" in text


def test_writes_to_leaves_are_refused_under_grad_mode():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x[0] = 5.0
    with tg.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0]


def test_a_view_made_without_grad_refuses_a_write_with_it():
    x = leaf(1.0, 2.0)
    y = x * 1
    with tg.no_grad():
        v = y[0]
    with pytest.raises(RuntimeError, match="no_grad"):
        v.mul_(x[0])


def test_write_through_overlapping_memory_is_refused():
    with pytest.raises(RuntimeError, match="single memory location"):
        tg.zeros(1).expand(3).add_(1)
    t = tg.arange(6.0)
    with pytest.raises(RuntimeError, match="single memory location|refers to a single"):
        t[1:].add_(t[:-1])


def test_detach_inplace_cuts_the_graph():
    x = leaf(1.0)
    y = x * 2
    y.detach_()
    assert y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match="detach views in-place"):
        (x * 2)[0].detach_()


def test_view_ops_in_place_change_the_window():
    x = tg.ones(2, 3, dtype=tg.float64, requires_grad=True)
    y = x * 1
    y.t_()
    assert y.shape == (3, 2)
    y.unsqueeze_(0).squeeze_(0)
    (y * tg.arange(6.0, dtype=tg.float64).reshape(3, 2)).sum().backward()
    assert x.grad.tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]


# ---- views made before their memory got a history ------------------------------------------------------------------


@pytest.mark.parametrize("lib", ["tinygrad_ext", "torch"])
def test_a_view_follows_when_its_base_gets_a_history(lib):
    T = pytest.importorskip(lib)
    x = T.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=T.float64, requires_grad=True)
    base = T.ones(2, 2, dtype=T.float64)
    rows, column = (base[0], base[1]), base[:, 1]
    base.mul_(x)
    assert column.requires_grad and not column.is_leaf and rows[0].requires_grad
    (g,) = T.autograd.grad((rows[0] * 3).sum() + (column * 10).sum(), x)
    assert g.tolist() == [[3.0, 13.0], [0.0, 10.0]]


def test_a_view_follows_when_another_view_is_written_to():
    """PyTorch takes `again` for a leaf and refuses to write to it."""
    x = leaf(1.0, 2.0)
    base = tg.ones(2, 2, dtype=tg.float64)
    first, again, other = base[0], base[0], base[1]
    first.mul_(x)
    again.mul_(5)  # a write of plain numbers to what has a history by now
    (g,) = tg.autograd.grad((base * 2).sum() + (other * 7).sum(), x, retain_graph=True)
    assert g.tolist() == [10.0, 10.0]
    again.register_hook(lambda g: g * 100)
    (again * 1).sum().backward()
    assert x.grad.tolist() == [500.0, 500.0]


@pytest.mark.parametrize("lib", ["tinygrad_ext", "torch"])
def test_a_view_made_without_recording_is_refused_once_its_memory_has_a_history(lib):
    T = pytest.importorskip(lib)
    x = T.ones(2, dtype=T.float64, requires_grad=True)
    base = T.ones(2, 2, dtype=T.float64)
    with T.no_grad():
        row = base[0]
    detached = base.detach()[0]
    base.mul_(x)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and its base"):
        row * 2
    assert not (detached * 2).requires_grad


@pytest.mark.parametrize("lib", ["tinygrad_ext", "torch"])
def test_a_graph_of_basic_indexing_keeps_nothing_and_runs_twice(lib):
    T = pytest.importorskip(lib)
    x = T.ones(3, 4, requires_grad=True)
    y = x[1:, None, ..., 0].sum()
    y.backward()
    y.backward()
    assert x.grad.sum().item() == 4.0


def test_what_unbind_returns_may_be_written_to():
    """PyTorch refuses it."""
    x = leaf(1.0, 2.0)
    y = x * 1
    first, second = y.unbind(0)
    first.mul_(5)
    (y * second).sum().backward()
    assert x.grad.tolist() == [10.0, 9.0]


WITHOUT_SLOPE = ("eq_", "ne_", "lt_", "le_", "gt_", "ge_", "logical_and_", "logical_or_", "logical_xor_")


@pytest.mark.parametrize("name", [*WITHOUT_SLOPE, "logical_not_"])
@pytest.mark.parametrize("part", [slice(None), slice(1, None)], ids=["whole", "view"])
def test_no_slope_leads_through_a_write_of_truths(name, part):
    x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    y[part].__getattribute__(name)(*([4.0] if name in WITHOUT_SLOPE[:6] else [tg.ones(1)] * (name != "logical_not_")))
    assert y.grad_fn is not None and y.grad_fn.next_functions[0][0] is not None
    (y * x).sum().backward()
    slope = tg.where(tg.arange(3) >= (part.start or 0), 0.0, 2.0)
    assert tg.equal(x.grad, y.detach() + slope * x.detach())
