"""`Tensor.set_`: the memory of another tensor, in eager mode and in script."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


def test_both_show_the_same_memory_afterwards():
    a, b = tg.ones(3), tg.zeros(2, 2)
    assert a.set_(b) is a and a.shape == (2, 2)
    b += 5
    assert a.equal(b) and a.data_ptr() == b.data_ptr()


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="Could not set tensor of type"):
        tg.ones(3).set_(tg.zeros(3, dtype=tg.int64))
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        tg.ones(3, requires_grad=True).set_(tg.zeros(3))
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        tg.ones(3, requires_grad=True)[1:].set_(tg.zeros(3))
    with pytest.raises(TypeError, match="must be a tensor or a storage, not"):
        tg.ones(3).set_(3)
    with pytest.raises(RuntimeError, match="Expected a Storage of type torch.float32 or an UntypedStorage, but got"):
        tg.ones(3).set_(tg.zeros(3, dtype=tg.int64).storage())
    with pytest.raises(RuntimeError):
        tg.ones(3).set_(tg.zeros(3).untyped_storage(), 1, (3,))
    parameter = nn.Parameter(tg.ones(3))
    with tg.no_grad():
        parameter.set_(tg.zeros(2))
    assert parameter.requires_grad and parameter.tolist() == [0, 0]


def test_a_storage_is_shown_by_its_window():
    source = tg.arange(6.0)
    for block in (source.untyped_storage(), source.storage(), source):
        t = tg.ones(4).set_(block, 1, (2, 2), (2, 1))
        assert t.tolist() == [[1, 2], [3, 4]] and t.storage_offset() == 1
        assert tg.ones(4).set_(block, 1, (2, 2)).tolist() == [[1, 2], [3, 4]]
        assert tg.ones(2, 2).set_(block).tolist() == [0, 1, 2, 3, 4, 5]
        t.add_(10)
        assert source.tolist() == [0, 11, 12, 13, 14, 5]
        t.sub_(10)
    assert tg.ones(4).set_(source=source).tolist() == source.tolist()
    assert tg.ones(4, dtype=tg.int32).set_(source.untyped_storage()).shape == (6,)


def test_a_tensor_that_is_set_to_nothing_is_empty():
    assert tg.ones(4).set_().shape == (0,) and tg.ones(4, dtype=tg.int8).set_().dtype is tg.int8
    assert tg.ones(4, device="meta").set_().is_meta


@pytest.mark.parametrize("is_leaf", [True, False])
def test_the_history_of_a_source_ends_in_a_refusal(is_leaf):
    source = tg.ones(3, requires_grad=True)
    source = source if is_leaf else source * 2
    shown = tg.zeros(2)
    assert shown.set_(source) is shown and shown.requires_grad and shown.shape == (3,)
    assert shown.data_ptr() == source.data_ptr()
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        (shown * 2).sum().backward()
    with tg.no_grad():
        assert not tg.zeros(2).set_(source).requires_grad


@pytest.mark.parametrize("grad", [True, False])
def test_a_view_that_is_set_is_a_view_of_nothing(grad):
    base = tg.ones(3)
    view = base[1:]
    view.set_(tg.full((2,), 5.0, requires_grad=grad))
    assert (view + 1).tolist() == [6, 6] and view.requires_grad is grad and not view._is_view()
    assert base.tolist() == [1, 1, 1] and not base.requires_grad
    base.mul_(tg.ones(3, requires_grad=True))
    assert (view + 1).tolist() == [6, 6] and view.requires_grad is grad


@pytest.mark.parametrize("is_view", [True, False])
@pytest.mark.parametrize(
    "arguments",
    [
        lambda: (tg.full((2,), 7.0),),
        lambda: (tg.full((2,), 7.0).untyped_storage(), 0, (2,), (1,)),
        lambda: (tg.full((2,), 7.0).storage(),),
        lambda: (tg.full((2,), 7.0, requires_grad=True), 0, (2,), (1,)),
        lambda: (),
    ],
)
def test_the_history_that_a_tensor_had_ends_in_a_refusal(arguments, is_view):
    x = tg.ones(3, requires_grad=True)
    y = (x * 2)[1:] if is_view else x * 2
    assert y.set_(*arguments()) is y and y.requires_grad and not y.is_leaf and y.storage_offset() == 0
    with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
        y.sum().backward()
    assert x.grad is None
    kept = x * 2
    with tg.no_grad():
        kept.set_(tg.full((3,), 7.0))
    kept.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_window_on_a_source_has_no_history():
    source = tg.ones(3, requires_grad=True)
    assert not tg.zeros(2).set_(source, 1, (2,), (1,)).requires_grad
    assert not tg.zeros(2).set_(source, 0, (2,)).requires_grad


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", tg.ones(3, 4))

    @jit.export
    def pack(self):
        self.rows.set_(tg.zeros(1))

    @jit.export
    def unpack(self):
        self.rows.set_(tg.full((3, 4), 2.0))

    def forward(self, x):
        return x + self.rows


def test_a_method_in_script_sets_a_buffer(tmp_path):
    scripted = jit.script(Packed())
    jit.save(scripted, tmp_path / "packed.pt")
    for module in (scripted, jit.load(tmp_path / "packed.pt"), Packed()):
        module.pack()
        assert module.rows.shape == (1,) and module(tg.ones(2)).tolist() == [1, 1]
        module.unpack()
        assert module(tg.ones(3, 4)).equal(tg.full((3, 4), 3.0))


def test_a_graph_that_saved_the_tensor_is_told():
    x = tg.ones(3, requires_grad=True)
    y = x * x
    with tg.no_grad():
        x.set_(tg.zeros(3))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
