"""vmap over the whole op table: each sample as in a loop, with every choice of batched arguments, and under grad."""

import itertools

import pytest

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.func import grad, vmap
from tinygrad_ext.func.rules import kind_of
from tinygrad_ext.testing import compare, layouts, sweep

OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}
SIZE = 3

# What is not compared with a loop, and why.
EXEMPT = {
    "draws numbers; tests/func/test_vmap_random.py compares the three modes": {
        n for n, op in OPS.items() if sweep.is_random(op) and not n.startswith(("empty", "new_empty"))
    },
    "what it makes is not set": {n for n in OPS if n.startswith(("empty", "new_empty"))},
    "its result hangs on the data: refused, see below": {
        *(n for n, op in OPS.items() if sweep.tagged(op, "data_dependent") and n != "cpu"),
        *("unique", "unique_consecutive", "masked_select"),
        *("nonzero", "nonzero.as_tuple", "argwhere", "where"),
    },
}
NOT_COMPARED = set().union(*EXEMPT.values())
# arguments on which the size of the result hangs; to differ from sample to sample is refused
SIZES = {"repeat_interleave.self_Tensor": 1}


class Batched:
    """An op on variants of a sample, some of whose tensors differ from sample to sample."""

    def __init__(self, op, sample):
        self.op, self.sample = op, sample
        self.tensors = [t.detach() for t in sweep.leaves(sample.args, sample.kwargs, tg.Tensor)]

    def __call__(self, *tensors):
        fresh = iter(tensors)
        swap = lambda t: next(fresh)
        args, kwargs = layouts.map_tensors(self.sample.args, swap), layouts.map_tensors(self.sample.kwargs, swap)
        return [r for r in compare.flatten(sweep.call(self.op, args, kwargs)) if isinstance(r, tg.Tensor)]

    def rows(self, size=SIZE):
        """For each tensor its variants, where the op takes them and the results have the same shape: of another scale,
        or with elements moved. Where it takes no other indices, floats alone differ."""
        for varied in (_variant, lambda t, k: _variant(t, k) if t.is_floating_point() else t):
            rows = [[varied(t, k) for k in range(size)] for t in self.tensors]
            try:
                shapes = [[r.shape for r in self(*row)] for row in zip(*rows)]
            except (RuntimeError, ValueError, IndexError):
                continue
            if shapes.count(shapes[0]) == len(shapes):
                return rows
        return [[t] * size for t in self.tensors]


def _variant(t, k):
    if t.dtype == tg.bool or not (t.is_floating_point() or t.is_complex()):
        return t.reshape(-1).roll(k).reshape(t.shape) if t.numel() and not t.dtype.is_complex else t
    return t * (1 - 0.125 * k)


def cases(op, dtype, count=None):
    if dtype not in sweep.supported(op):
        return
    for sample in itertools.islice(sweep.samples(op, dtype), count):
        found = Batched(op, sample)
        if found.tensors:
            yield found


def same(op, got, rows, dtype, what, factor=1.0):
    """Compare results with the batch in front with those of each sample."""
    for i, whole in enumerate(got):
        want = tg.stack([row[i] for row in rows])
        compare.assert_close(whole, want, dtype, what, factor)


def chosen(count):
    """All tensors, and each alone."""
    yield tuple(range(count))
    if count > 1:
        yield from ((i,) for i in range(count))


def refused(op, which):
    """Whether samples cannot be told apart: shared memory would be written to, or sizes differ."""
    written = op.schema.args[0].is_write or set(registry.variants(op.record)) == {"inplace"}
    return (written and 0 not in which) or SIZES.get(op.name.removeprefix("aten::")) in which


def described(function, dtype, which):
    return f"{function.op.name} {function.sample} in {dtype}, batched: {which}"


def check(function, dtype, which):
    rows = function.rows()
    row = [r if i in which else r[:1] * SIZE for i, r in enumerate(rows)]
    given = [tg.stack(r) if i in which else r[0] for i, r in enumerate(row)]
    dims = tuple(0 if i in which else None for i in range(len(given)))
    expected = [function(*each) for each in zip(*row)]
    if not expected[0]:
        return
    run = vmap(lambda *t: tuple(function(*t)), dims)
    if refused(function.op, which):
        with pytest.raises(RuntimeError, match="vmap"):
            run(*given)
        return
    got = run(*given)
    same(function.op, got, expected, dtype, described(function, dtype, which))
    if kind_of(function.op) == "pointwise":
        for i, whole in enumerate(got):
            wanted = tg.stack([row[i] for row in expected])
            assert compare.same_bits(whole, wanted), described(function, dtype, which)


def compared():
    return [pytest.param(op, id=n) for n, op in OPS.items() if n not in NOT_COMPARED]


def test_exemptions_are_few_and_samples_differ():
    assert [len(names) for names in EXEMPT.values()] == [34, 5, 16]
    for name, op in OPS.items():
        for function in () if name in NOT_COMPARED else cases(op, "float64"):
            differ = any(not tg.equal(row[0], row[1]) for row in function.rows())
            assert differ or not any(t.numel() > 1 for t in function.tensors if t.is_floating_point()), function.sample


@pytest.mark.parametrize("op", compared())
def test_each_sample_is_as_in_a_loop(op):
    for dtype in ("float64", "float32", "complex64", "complex128", "int64", "int32", "bool", "float16", "bfloat16"):
        for function in cases(op, dtype, None if dtype == "float64" or dtype == "int64" else 2):
            for which in chosen(len(function.tensors)) if dtype in ("float64", "int64") else [None]:
                check(function, dtype, range(len(function.tensors)) if which is None else which)


SPECIAL = (float("inf"), float("nan"), -float("inf"))


def special(t, k):
    """A variant with an element that is not finite, another one in each sample; with nothing else in the last."""
    if not t.is_floating_point() or not t.numel():
        return t
    t = t.clone() if k < len(SPECIAL) else t.new_full(t.shape, SPECIAL[0])
    t.view(-1)[k % t.numel()] = SPECIAL[k % len(SPECIAL)]
    return t


@pytest.mark.parametrize("op", compared())
def test_what_is_not_finite_is_as_in_a_loop(op):
    for function in cases(op, "float64", 4):
        rows = [[special(t.contiguous(), k) for k in range(4)] for t in function.tensors]
        try:
            expected = [function(*row) for row in zip(*rows)]
        except (RuntimeError, ValueError, IndexError):
            continue  # such values are refused
        if not expected[0] or refused(op, range(len(rows))):
            continue
        got = vmap(lambda *t, function=function: tuple(function(*t)))(*[tg.stack(r) for r in rows])
        same(op, got, expected, "float64", f"{op.name} {function.sample} of what is not finite")


@pytest.mark.parametrize("op", compared())
def test_nested_batches_at_other_dimensions(op):
    for function in cases(op, "float64", 2):
        if refused(op, range(len(function.tensors))):
            continue
        rows = function.rows(4)
        expected = [function(*row) for row in zip(*rows)]
        if not expected[0]:
            continue
        given = [tg.stack(r).unflatten(0, (2, 2)).movedim((0, 1), (-1, 0)) for r in rows]
        nested = vmap(vmap(lambda *t: tuple(function(*t))), -1, 1)
        got = [r.movedim((1, 0), (0, 1)).flatten(0, 1) for r in nested(*given)]
        same(op, got, expected, "float64", f"{op.name} {function.sample} nested")


def differentiable(op, dtype):
    for sample in itertools.islice(sweep.samples(op, dtype, True) if dtype in sweep.supported(op) else (), 4):
        function = Batched(op, sample)
        needs = [t.requires_grad for t in sweep.leaves(sample.args, sample.kwargs, tg.Tensor)]
        if not any(needs):
            continue
        results = function(*[t.requires_grad_(n) for t, n in zip(function.tensors, needs)])
        function.tensors = [t.detach() for t in function.tensors]
        smooth = [i for i, r in enumerate(results) if r.requires_grad and r.numel()]
        if smooth:
            yield function, tuple(i for i, n in enumerate(needs) if n), smooth


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("op", compared())
def test_gradients_under_vmap_and_vmap_under_gradients(op, dtype):
    for function, places, smooth in differentiable(op, dtype):
        if SIZES.get(op.name.removeprefix("aten::")) is not None:
            continue
        rows = function.rows()

        def total(*tensors, function=function, smooth=smooth):
            results = function(*tensors)
            parts = [(results[i].abs() if results[i].is_complex() else results[i]).sin().sum() for i in smooth]
            return sum(parts[1:], parts[0])

        slope = grad(total, places)
        expected = [slope(*row) for row in zip(*rows)]
        for which in chosen(len(rows)):
            if which != tuple(range(len(rows))):
                row = [r if i in which else r[:1] * SIZE for i, r in enumerate(rows)]
                expected_here = [slope(*each) for each in zip(*row)]
            else:
                row, expected_here = rows, expected
            given = [tg.stack(r) if i in which else r[0] for i, r in enumerate(row)]
            dims = tuple(0 if i in which else None for i in range(len(given)))
            got = vmap(slope, dims)(*given)
            same(op, got, expected_here, dtype, described(function, "vmap of grad", which), 20)
        stacked = [tg.stack(r) for r in rows]
        got = grad(lambda *t, total=total: vmap(total)(*t).sum(), places)(*stacked)
        same(op, got, expected, dtype, described(function, "grad of vmap", "all"), 20)


@pytest.mark.parametrize("name", sorted(EXEMPT["its result hangs on the data: refused, see below"]))
def test_what_depends_on_the_data_is_refused(name):
    op, seen = OPS[name], 0
    for function in cases(op, "float32", 2):
        given = [tg.stack(r) for r in function.rows()]
        with pytest.raises(RuntimeError, match="vmap"):
            vmap(lambda *t, function=function: tuple(function(*t)))(*given)
        seen += 1
    assert seen


def test_no_op_runs_sample_by_sample():
    assert {n for n, op in OPS.items() if kind_of(op) == "loop"} == set()


@pytest.mark.parametrize("name", [n for n, op in OPS.items() if op.record.view and n not in NOT_COMPARED])
def test_what_is_written_to_a_view_reaches_its_base(name):
    for function in cases(OPS[name], "float64", 3):

        def write(x, *rest, function=function):
            own = x.clone()
            for view in function(own, *rest):
                view.mul_(2).add_(1)
            return own

        rows = function.rows()
        given = [tg.stack(r) for r in rows]
        try:
            expected = [[write(*row)] for row in zip(*rows)]
        except RuntimeError as error:  # several elements in one place
            with pytest.raises(RuntimeError, match=str(error)[:40]):
                vmap(write)(*given)
            continue
        got = vmap(write)(*given)
        same(OPS[name], [got], expected, "float64", f"{name} {function.sample}: what was written to it")
