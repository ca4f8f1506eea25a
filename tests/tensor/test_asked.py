"""Functions at the top that do what a tensor's methods do, and methods that call Python for each element."""

import pytest

import tinygrad_ext as tg


def test_questions():
    x = tg.ones(2)
    assert not tg.is_conj(x) and not tg.is_neg(x) and not tg.is_inference(x) and tg.get_device(x) == -1
    assert tg.is_nonzero(tg.ones(1)) and not tg.is_nonzero(tg.zeros(()))
    assert tg.is_same_size(x, tg.zeros(2)) and not x.is_same_size(tg.zeros(2, 1))
    assert tg.typename(x) == "torch.FloatTensor" and tg.typename(1) == tg.typename(int) == "int"
    assert tg.typename(tg.nn.Linear(1, 1)).endswith(".Linear") and tg.Future is tg.futures.Future
    with pytest.raises(RuntimeError, match="ambiguous"):
        tg.is_nonzero(x)


def test_assert_is_seen_by_traces():
    tg._assert(True, "said")
    with pytest.raises(AssertionError, match="said"):
        tg._assert(False, "said")

    def checked(x):
        tg._assert(x.shape[0] == 2, "two")
        return x.reshape(x.shape[:-1] + (1, 2))

    traced = tg.fx.symbolic_trace(checked)
    assert any(n.target is tg._assert for n in traced.graph.nodes)
    for function in (traced, tg.jit.script(checked_rows)):
        with pytest.raises(AssertionError, match="two"):
            function(tg.ones(3, 2))
        assert function(tg.ones(2, 2)).shape == (2, 1, 2)


def checked_rows(x):
    tg._assert(x.shape[0] == 2, "two")
    return x.reshape(x.shape[:-1] + (1, 2))


def test_writes():
    x = tg.zeros(3)
    assert tg.index_put_(x, (tg.tensor([0, 2]),), tg.tensor([1.0, 2.0])) is x and x.tolist() == [1, 0, 2]
    assert tg.index_put_(x, (tg.tensor([0, 0]),), tg.tensor(1.0), True).tolist() == [3, 0, 2]
    assert tg.from_dlpack(tg.to_dlpack(x)).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_alpha_dropout"])
def test_dropout_in_place(name):
    x = tg.rand(4, 6)
    tg.manual_seed(1)
    wanted = getattr(tg.nn.functional, name)(x, 0.5, True)
    tg.manual_seed(1)
    assert getattr(tg, name + "_")(x, 0.5, True) is x
    assert tg.equal(x, wanted)


def test_python_for_each_element():
    x = tg.arange(6).reshape(2, 3)
    assert x.t().apply_(lambda a: a * 1.5).tolist() == [[0, 4], [1, 6], [3, 7]]
    assert x.map_(tg.tensor([1, 2, 3]), lambda a, b: a + b).tolist() == [[1, 3, 6], [5, 8, 10]]
    assert x.map2_(tg.tensor(2), tg.tensor([[1], [0]]), lambda a, b, c: a * b + c).tolist() == [
        [3, 7, 13],
        [10, 16, 20],
    ]
    with pytest.raises(RuntimeError, match=r"Can't call map_\(\) on Variable that requires grad"):
        tg.ones(1, requires_grad=True).map_(tg.ones(1), lambda a, b: a)
    with pytest.raises(TypeError, match="not callable"):
        x.apply_(3)
    with pytest.raises(RuntimeError):
        tg.ones(2).map_(tg.ones(3), lambda a, b: a)
    with pytest.raises(RuntimeError, match=r"Can't call map2_\(\) on Variable that requires grad"):
        tg.ones(1).map2_(tg.ones(1), tg.ones(1, requires_grad=True), lambda a, b, c: a)
    with pytest.raises(TypeError, match="map_: expected torch.LongTensor for argument 'other' .got torch.FloatTensor."):
        x.map_(tg.ones(3), lambda a, b: a)
    with pytest.raises(TypeError, match=r"map2_\(\): argument 'y' must be Tensor, not int"):
        x.map2_(x, 3, lambda a, b, c: a)
