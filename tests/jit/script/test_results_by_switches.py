"""Functions in script whose arguments say what comes back: places of largest elements, shapes, devices."""

import pytest

import tinygrad_ext as tg
import tinygrad_ext.nn.functional as F
from tinygrad_ext import jit, nn

POOLS = {
    "max_pool1d": ("x, 2", 3),
    "max_pool2d": ("x, 2, stride=1", 4),
    "max_pool3d": ("x, 2", 5),
    "adaptive_max_pool1d": ("x, 2", 3),
    "adaptive_max_pool2d": ("x, (2, 3)", 4),
    "adaptive_max_pool3d": ("x, 2", 5),
    "fractional_max_pool2d": ("x, 2, output_size=2, _random_samples=torch.full([1, 2, 2], 0.5)", 4),
    "fractional_max_pool3d": ("x, 2, output_size=2, _random_samples=torch.full([1, 2, 3], 0.5)", 5),
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling_gives_places_where_it_is_told(name):
    given, rank = POOLS[name]
    text = f"def f(x):\n    return F.{name}({given}, return_indices={{}})\n"
    x = tg.rand([1, 2, 5, 5, 5][:rank], generator=tg.Generator().manual_seed(1)).requires_grad_()
    for told in (True, False):
        expected = eval(f"F.{name}({given}, return_indices={told})", {"F": F, "x": x, "torch": tg})
        found = jit.CompilationUnit(text.format(told)).f(x)
        assert isinstance(found, tuple) is isinstance(expected, tuple) is told
        for one, other in zip(*[r if told else (r,) for r in (found, expected)]):
            assert one.equal(other) and one.dtype == other.dtype
        first, second = [tg.autograd.grad((r[0] if told else r).sum(), x)[0] for r in (found, expected)]
        assert first.equal(second)


def test_layers_give_and_take_places():
    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool, self.back = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)

        def forward(self, x):
            values, places = self.pool(x)
            return self.back(values, places)

    x = tg.rand(1, 2, 4, 4)
    assert jit.script(Around())(x).equal(Around()(x))


def test_a_switch_is_known_while_compiling():
    def program(x, both: bool):
        return F.max_pool1d(x, 2, return_indices=both)

    with pytest.raises(jit.Error, match="return_indices decides what comes back"):
        jit.script(program)


def test_shapes_that_broadcast_and_devices_by_their_parts():
    def shapes(x, y, n: int):
        return tg.broadcast_shapes(x.shape, y.size(), n, (3,), [1, 1])

    def devices(kind: str, n: int):
        return tg.device(kind, n), tg.device(type=kind), tg.device(type="cuda", index=1), tg.device("cpu", index=n)

    scripted = jit.script(shapes)
    assert scripted(tg.ones(2, 4, 1), tg.ones(4, 3), 1) == list(shapes(tg.ones(2, 4, 1), tg.ones(4, 3), 1)) == [2, 4, 3]
    with pytest.raises(RuntimeError, match="do not broadcast"):
        scripted(tg.ones(2), tg.ones(4, 3), 1)
    assert jit.script(devices)("cpu", 0) == devices("cpu", 0)


FLAGS = [
    *("requires_grad", "is_leaf", "retains_grad", "is_sparse", "is_sparse_csr", "is_nested", "is_quantized"),
    *("is_mkldnn", "is_meta", "is_cpu", "is_cuda", "is_xpu", "is_mps", "is_xla", "is_ipu", "is_mtia", "is_maia"),
]


def test_what_is_true_or_false_of_a_tensor():
    lines = ", ".join(f"x.{name}" for name in FLAGS)
    scripted = jit.CompilationUnit(f"def f(x):\n    return [{lines}]\n").f
    for x in (tg.ones(2), tg.ones(2, requires_grad=True), tg.ones(2, device="meta"), tg.ones(2, 2).to_sparse()):
        assert scripted(x) == [getattr(x, name) for name in FLAGS]
    assert jit.CompilationUnit("def f(x):\n    return x.is_sparse_csr\n").f(tg.ones(2, 2).to_sparse_csr())


def test_generators_are_told_in_comments_and_fill_tensors():
    for name in ("uniform_", "normal_", "xavier_normal_", "xavier_uniform_"):
        text = f"def f(x, g):\n    # type: (Tensor, Generator)\n    return torch.nn.init.{name}(x, generator=g)\n"
        found = jit.CompilationUnit(text).f(tg.ones(2, 2), tg.Generator().manual_seed(5))
        assert found.equal(getattr(nn.init, name)(tg.ones(2, 2), generator=tg.Generator().manual_seed(5)))
