"""Functions in long chains and in many threads."""

import threading

import pytest
from affine import STYLES, Affine, AffineLegacy, point

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, grad


class SquareRoot(Function):
    """Saves its output, as the chain's memory would leak through it."""

    @staticmethod
    def forward(ctx, x):
        y = x.sqrt()
        ctx.save_for_backward(y)
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, g):
        return g / (2 * ctx.saved_tensors[0])


CHAINS = {"output saved": SquareRoot.apply, **STYLES, "legacy": AffineLegacy()}


@pytest.mark.parametrize("style", CHAINS)
def test_a_hundred_thousand_functions_in_a_chain(style):
    x, one, f = point(1.0), tg.ones(1, dtype=tg.float64), CHAINS[style]
    rest = () if style == "output saved" else (one,)
    y = x
    for _ in range(100_000):
        y = f(y, *rest)
    y.sum().backward(retain_graph=True)
    assert x.grad.item() == (0.0 if style == "output saved" else 1.0)
    del y  # freed without recursion


def test_eight_threads_run_every_style_at_once():
    """Values differ in each thread; some threads fail inside forward and backward all the time."""
    failures = []
    shared = point(1.0)

    class Fail(Function):
        @staticmethod
        def forward(ctx, x, where):
            ctx.where = where
            return x / (1 / 0 if where == "forward" else 1)

        @staticmethod
        def backward(ctx, g):
            raise KeyError(ctx.where)

    def work(k):
        x, w = point(float(k)), point(3.0)
        for _ in range(60):
            for f, scale in ((Affine.apply, 1), (STYLES["setup_context"], 1), (AffineLegacy(2.0), 2)):
                y = f(x, w, shared)
                assert y.item() == scale * (3.0 * k + 1)
                gx, gw, gb = grad(y * y, (x, w, shared), create_graph=True)
                assert (gx.item(), gb.item()) == (2 * y.item() * 3 * scale, 2 * y.item() * scale)
                assert grad(gw, w)[0].item() == 2 * (k * scale) ** 2
            with pytest.raises(ZeroDivisionError):
                Fail.apply(x, "forward")
            with pytest.raises(KeyError):
                Fail.apply(x, "backward").backward()
            assert tg.is_grad_enabled()

    def guarded(k):
        try:
            work(k)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_threads_share_one_graph():
    """As in PyTorch, several threads may run one graph at once when it is retained."""
    x = point(2.0)
    y = Affine.apply(Affine.apply(x, x), x)
    found = []
    threads = [threading.Thread(target=lambda: found.append(grad(y, x, retain_graph=True)[0].item())) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [12.0] * 8
