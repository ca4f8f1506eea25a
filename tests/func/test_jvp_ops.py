"""Forward mode over the whole op table: products with the Jacobian and second derivatives, against reverse mode."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import func
from tinygrad_ext.func.tangents import kind_of
from tinygrad_ext.testing import compare, layouts, sweep

DTYPES = ("float64", "float32", "complex128")
OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}
# composites without anything to differentiate in their samples
DISCRETE = set(
    [
        "__rlshift__",
        "__rrshift__",
        "_convert_indices_from_coo_to_csr",
        "_convert_indices_from_csr_to_coo",
        "_count_between",
        "_fake_quantize",  # whose slope is not that of its steps: see tests/ops/test_quantize.py
        "fake_quantize_per_channel_affine",
        "fake_quantize_per_tensor_affine",
        "fake_quantize_per_tensor_affine.tensor_qparams",
        "allclose",
        "detach_copy",
        "isin.Tensor_Tensor",
        "unravel_index",
        "view_copy.dtype",
        "where",
        "nonzero.as_tuple",
        "argwhere",
        "argsort",
        "argsort.stable",
        "searchsorted.Tensor",
        "searchsorted.Scalar",
        "bucketize.Tensor",
        "bucketize.Scalar",
        "unique",
        "unique_consecutive",
        "bincount",
        "equal",
        "bool",
        "byte",
        "char",
        "short",
        "int",
        "long",
        "half",
        "bfloat16",
        "float",
        "double",
        "cfloat",
        "cdouble",
    ]
)
REFUSING = {"heaviside", "geqrf", "_ldl_factor", "_ldl_solve", "_without_derivative"}  # a gradient, and a tangent


def noise(like, seed):
    generator = tg.Generator().manual_seed(seed)
    if like.is_complex():
        return tg.complex(*[tg.randn(like.shape, generator=generator, dtype=tg.float64) for _ in "ab"]).to(like.dtype)
    return tg.randn(like.shape, generator=generator, dtype=like.dtype)


def inner(a, b):
    """The real inner product."""
    found = (a.conj() * b).sum() if a.is_complex() else (a * b).sum()
    return found.real if found.is_complex() else found


class Map:
    """An op on a sample, as a function of the tensors that have derivatives."""

    def __init__(self, op, sample):
        self.op, self.sample = op, sample
        self.inputs = [t for t in sweep.leaves(sample.args, sample.kwargs, tg.Tensor) if t.requires_grad]

    def __call__(self, *tensors):
        fresh = iter(tensors)
        swap = lambda t: next(fresh) if t.requires_grad else t
        args, kwargs = layouts.map_tensors(self.sample.args, swap), layouts.map_tensors(self.sample.kwargs, swap)
        args = self.op.record.valid(*args) if self.op.record.valid else args
        return [r for r in compare.flatten(sweep.call(self.op, args, kwargs)) if isinstance(r, tg.Tensor)]

    def floating(self, *tensors):
        return tuple(r for r in self(*tensors) if r.is_floating_point() or r.is_complex())


def maps(op, dtype):
    if dtype not in sweep.supported(op):
        return
    for sample in sweep.samples(op, dtype, True):
        found = Map(op, sample)
        if not found.inputs or not all(t.is_contiguous() for t in found.inputs):
            continue
        results = found(*found.inputs)
        if any(r.requires_grad and r.numel() for r in results):
            yield found, [t.detach() for t in found.inputs], results


def weighted(function, weights):
    """A real function: the outputs that depend on the inputs, times weights."""

    def total(*tensors):
        return sum(inner(w, r) for w, r in zip(weights, function(*tensors)) if w is not None)

    return total


def test_what_the_sweep_does_not_reach_has_no_derivative():
    missed = {n for n, op in OPS.items() if not any(True for dtype in DTYPES for _ in maps(op, dtype))}
    assert {n for n in missed if kind_of(OPS[n].record) != "none"} == DISCRETE | REFUSING


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_a_product_with_the_jacobian_is_transposed_by_reverse_mode(op):
    for dtype in DTYPES:
        for function, primals, results in maps(op, dtype):
            v = [noise(p, i) for i, p in enumerate(primals)]
            values, slopes = func.jvp(function.floating, tuple(primals), tuple(v))
            smooth = [r for r in results if r.is_floating_point() or r.is_complex()]
            assert [s.shape for s in slopes] == [r.shape for r in smooth]
            assert [s.dtype for s in slopes] == [r.dtype for r in smooth]
            compare.assert_close(list(values), [r.detach() for r in smooth], dtype, op.name)
            chosen = [i for i, r in enumerate(smooth) if r.requires_grad]
            u = [noise(r, 100 + i) for i, r in enumerate(smooth)]
            got = tg.autograd.grad(
                [smooth[i] for i in chosen], function.inputs, [u[i] for i in chosen], allow_unused=True
            )
            back = sum(inner(g, t).double() for g, t in zip(got, v) if g is not None)
            forward = sum(inner(u[i], slopes[i]).double() for i in chosen)
            if not all(p.numel() for p in primals):
                continue  # of nothing a mean is nan, and has no gradient
            size = sum((u[i].abs() * slopes[i].abs()).sum().double() for i in chosen)
            close(forward, back, size, 2e-4 if dtype == "float32" else 1e-9, f"{op.name} {function.sample} in {dtype}")


def close(got, want, size, tolerance, what):
    if not (want == want).all():
        return
    assert (got - want).abs() <= tolerance * (1 + size + want.abs()), f"{what}: {got} forward, {want} backward"


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_second_derivatives_agree_in_all_four_ways(op):
    if "gradgradcheck" in (op.record.gaps or {}):
        pytest.skip(f"the record says why there are none: {op.record.gaps['gradgradcheck']}")
    for function, primals, results in [*list(maps(op, "float64"))[:4], *list(maps(op, "complex128"))[:2]]:
        smooth = [r for r in results if r.is_floating_point() or r.is_complex()]
        weights = [noise(r, 100 + i) if r.requires_grad else None for i, r in enumerate(smooth)]
        total = weighted(function.floating, weights)
        primals, every = tuple(primals), tuple(range(len(primals)))
        v, w = (tuple(noise(p, seed + i) for i, p in enumerate(primals)) for seed in (0, 50))
        slope = func.grad(total, every)
        want = func.grad(lambda *x: sum(inner(g, t) for g, t in zip(slope(*x), v)), every)(*primals)
        ways = {
            "forward over reverse": func.jvp(slope, primals, v)[1],
            "reverse over forward": func.grad(lambda *x: func.jvp(total, x, v)[1], every)(*primals),
        }
        for way, got in ways.items():
            compare.assert_close(list(got), list(want), "float64", f"{op.name} {function.sample}: {way}", factor=1e4)
        twice = func.jvp(lambda *x: func.jvp(total, x, v)[1], primals, w)[1]
        expected = sum(inner(a, b) for a, b in zip(want, w))
        size = sum((a.abs() * b.abs()).sum() for a, b in zip(want, w))
        close(twice, expected, size, 1e-8, f"{op.name} {function.sample}: forward over forward")
