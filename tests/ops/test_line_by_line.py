"""Kernels that work on several lines, rows or channels at once: each comes out as if it were alone, in every layout."""

import numpy as np
import pytest

import tinygrad_ext as tg

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (300, 1, 1), (3, 50, 2), (2, 3, 130), (40, 7, 1), (1, 129, 3)])
def test_running_log_sums_of_a_line_do_not_hang_on_its_neighbours(shape, dtype):
    x = (np.random.default_rng(0).standard_normal(shape) * 20).astype(dtype)
    wide = np.logaddexp.accumulate(x.astype("f8"), axis=1)
    t = tg.from_numpy(x)
    found = t.logcumsumexp(1).numpy()
    np.testing.assert_allclose(found, wide, rtol=1e-6 if dtype == "float32" else 1e-13, atol=1e-6)
    np.testing.assert_array_equal(t.mT.contiguous().mT.logcumsumexp(1).numpy(), found)
    for i in range(shape[0]):
        np.testing.assert_array_equal(t[i, :, -1].logcumsumexp(0).numpy(), found[i, :, -1])


def test_running_log_sums_of_complex_lines_are_those_of_double_precision_rounded_once():
    random = np.random.default_rng(0)
    x = (random.standard_normal((5, 40, 7)) * 9 + 1j * random.standard_normal((5, 40, 7)) * 9).astype("c8")
    t = tg.from_numpy(x)
    found = t.logcumsumexp(1).numpy()
    np.testing.assert_array_equal(tg.from_numpy(x.astype("c16")).logcumsumexp(1).numpy().astype("c8"), found)
    np.testing.assert_array_equal(t.mT.contiguous().mT.logcumsumexp(1).numpy(), found)
    np.testing.assert_array_equal(t[3, :, -1].logcumsumexp(0).numpy(), found[3, :, -1])


@pytest.mark.parametrize(
    "line, sums, slopes",
    [
        ([-INF, -INF, 0.0, -INF], [-INF, -INF, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]),
        ([1.0, INF, 2.0, -INF], [1.0, INF, INF, INF], [1.0, 0.0, 0.0, 0.0]),
        ([INF, INF], [INF, INF], [0.0, 0.0]),
        ([0.0, NAN, 2.0], [0.0, NAN, NAN], [NAN, NAN, NAN]),
        ([-1e30, 1e30, 0.0], [-1e30, 1e30, 1e30], [1.0, 2.0, 0.0]),
    ],
)
def test_running_log_sums_of_infinite_elements(line, sums, slopes):
    x = tg.tensor(line, dtype=tg.float64, requires_grad=True)
    found = x.logcumsumexp(0)
    np.testing.assert_array_equal(found.detach().numpy(), sums)
    found.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), slopes)


@pytest.mark.parametrize("p", [1.0, 2.0, 2.5, INF])
@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
def test_distances_of_pairs_are_those_of_all_rows(p, dtype):
    for n in (*range(10), 15, 16, 17, 33):
        for depth in (0, 1, 3):
            x = tg.from_numpy(np.random.default_rng(n).standard_normal((depth, n))).to(dtype).mT
            rows, columns = tg.triu_indices(n, n, 1)
            assert tg.equal(tg.pdist(x, p), tg.cdist(x, x, p)[rows, columns])


def test_slopes_of_pairs_are_those_of_all_rows():
    for p in (1.0, 2.0, 3.0, INF):
        x = tg.from_numpy(np.random.default_rng(1).standard_normal((9, 3))).requires_grad_()
        weight = tg.arange(36.0, dtype=tg.float64)
        rows, columns = tg.triu_indices(9, 9, 1)
        pairs = tg.autograd.grad(tg.pdist(x, p), x, weight)[0]
        whole = tg.autograd.grad(
            tg.cdist(x, x.detach(), p), x, tg.zeros(9, 9, dtype=tg.float64).index_put((rows, columns), weight)
        )[0]
        whole += tg.autograd.grad(
            tg.cdist(x, x.detach(), p), x, tg.zeros(9, 9, dtype=tg.float64).index_put((columns, rows), weight)
        )[0]
        np.testing.assert_allclose(pairs.numpy(), whole.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "name, shape",
    [("pixel_shuffle", (2, 8, 3, 5)), ("pixel_unshuffle", (2, 3, 4, 6)), ("channel_shuffle", (2, 6, 3, 4))],
)
def test_pixels_and_channels_of_every_layout(name, shape):
    shuffled = getattr(tg, name)
    x = tg.arange(float(np.prod(shape))).reshape(shape)
    want = shuffled(x, 2)
    assert want.is_contiguous()
    assert tg.equal(shuffled(x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0), 2), want)
    assert tg.equal(shuffled(x.to(memory_format=tg.channels_last), 2), want)
    assert tg.equal(shuffled(x[:1].expand(3, -1, -1, -1), 2)[2], want[0])
    assert tg.equal(shuffled(x.to(tg.uint16), 2), want.to(tg.uint16))
    assert shuffled(x.to("meta"), 2).shape == want.shape


def test_channels_of_no_elements_are_shuffled_back():
    x = tg.zeros(2, 0, 3, requires_grad=True)
    tg.channel_shuffle(x, 2).sum().backward()
    assert x.grad.shape == (2, 0, 3)
