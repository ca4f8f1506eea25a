"""One op, one check: what the sweep over the op table runs.

An op under test is an Op of the registry; its record supplies samples, reference, domain, errors and gaps.
"""

import functools
import importlib
import warnings

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.core.data import table
from tinygrad_ext.ops import samples as sampling
from tinygrad_ext.ops.record import BUILTIN
from tinygrad_ext.ops.samples import Maker
from tinygrad_ext.testing import compare, layouts
from tinygrad_ext.testing.generate import from_schema
from tinygrad_ext.testing.wide import doubled, rounded, wide

KINDS = {word: [row.name for row in table.dtypes(*kinds)] for word, kinds in table.WORDS.items()}
# without uint16, uint32 and uint64, in which hardly a sample can be made: what takes them says so by "natural"
ALL_DTYPES = [name for word, names in KINDS.items() if word != "natural" for name in names]
KINDS["signed"] = [row.name for row in table.dtypes("signed")]


def ops():
    """Every op of the table that users call by name."""
    return [o for o in registry.ops.values() if registry.variants(o.record)]


def supported(op):
    """Names of the dtypes the op takes: what the record declares, else those in which its first sample runs.

    The comparison with PyTorch tries the others too, so that a dtype cannot be lost unseen. A plugin's op is asked anew
    each time: it may get another kernel.
    """
    return (_builtin_dtypes if op.record.owner == BUILTIN else _dtypes)(op)


def _dtypes(op):
    record = op.record
    if record.scalar is not None:
        loops = op.loop_dtypes
        return [
            d
            for d in ALL_DTYPES + KINDS["natural"]
            if d in loops or ("float" in (record.promote or "") and d in KINDS["bool"] + KINDS["int"])
        ]
    if record.types is None:
        return [d for d in ALL_DTYPES if _runs(op, d)]
    return [name for kind in record.types.split() for name in KINDS[kind]]


_builtin_dtypes = functools.cache(_dtypes)


def _runs(op, dtype):
    try:
        for sample in samples(op, dtype)[:1]:
            call(op, sample.args, sample.kwargs)
            return True
    except (Exception, SystemExit):  # whatever it is, "other dtypes are refused by name" judges it
        pass
    return dtype in KINDS["float"] and op.record.owner == BUILTIN


def samples(op, dtype, requires_grad=False):
    """The record's samples in a dtype, or the usual ones of a pointwise op; else, for a plugin's op, made up ones."""
    make = Maker(getattr(tg, dtype), op.record.domain, requires_grad)
    found = sampling.of_record(op.record, op.schema, make)
    if not found and op.record.samples is None and op.record.owner != BUILTIN:
        found = from_schema(op.schema, make)
    if wrong := [s for s in found if not isinstance(s, sampling.Sample)]:
        raise TypeError(f"{op.name}: samples= must yield ops.samples.Sample(...), not {wrong[0]!r}")
    return found


def function(op):
    """A callable for the op: its public function, else its method, else the in-place method on a copy."""
    record, name = op.record, op.schema.name
    kinds = registry.variants(record)
    if "function" in kinds:
        return registry.functions[registry.prefixes(record)[0] + name]
    if "method" in kinds:
        return registry.methods[name]
    method = registry.methods[name + "_"]
    return lambda self, *args, **kwargs: method(self.clone(), *args, **kwargs)


def call(op, args, kwargs):
    """The op on a sample; the same random numbers each time.

    An op that writes to arguments gets copies of them, and the answer is (result, those copies). Where a result is
    determined in part, the answer is that part.
    """
    tg.manual_seed(0)
    if not any(a.is_write for a in op.schema.args):
        result = function(op)(*args, **kwargs)
        return op.record.determined(result) if op.record.determined and "out" not in kwargs else result
    args, kwargs = layouts.map_tensors(args, tg.clone), layouts.map_tensors(kwargs, tg.clone)
    result = function(op)(*args, **kwargs)
    return result, written(op, args, kwargs)


def written(op, args, kwargs):
    """The arguments among these that the op declares to write to."""
    places = [a for a in op.schema.args if not a.kwarg_only]
    given = {**{a.name: v for a, v in zip(places, args)}, **kwargs}
    return [given[a.name] for a in op.schema.args if a.is_write and given.get(a.name) is not None]


def is_random(op):
    """Whether the result depends on a generator, or is not set at all."""
    return tagged(op, "random") or tagged(op, "unset")


# words of records, and PyTorch's tags that say the same
_ALSO = {
    "random": {"nondeterministic_seeded"},
    "data_dependent": {"data_dependent_output", "dynamic_output_shape"},
    "unset": {"nondeterministic_bitwise"},
}


def tagged(op, word):
    """Whether a record's tags say a word, in our spelling or in PyTorch's."""
    return bool(({word} | _ALSO.get(word, set())) & set((op.record.tags or "").split()))


def reference(op):
    """The record's NumPy function, or None."""
    r = op.record.reference
    if isinstance(r, str):
        module, _, name = r.rpartition(".")
        try:
            r = getattr(importlib.import_module(module), name)
        except ImportError:
            return None
    return r


def reference_agrees(op, sample, dtype):
    """The op gives what the record's NumPy function gives, which computes in float64."""
    widened = doubled if "float" in (op.record.promote or "") else lambda t: wide(compare.to_numpy(t))
    args, kwargs = layouts.map_tensors(sample.args, widened), layouts.map_tensors(sample.kwargs, widened)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        want = compare.flatten(reference(op)(*args, **kwargs))
    got = compare.flatten(call(op, sample.args, sample.kwargs))
    if len(want) == len(got):
        want = [w if w is None else rounded(w, g) for w, g in zip(want, got)]
    compare.assert_close(got, want, dtype, f"{op.name} {sample} in {dtype}", factor=5, check_dtype=False)


def leaves(args, kwargs, cls):
    """The values of a class among arguments and the lists among them."""
    found = []
    for v in [*args, *kwargs.values()]:
        for leaf in v if isinstance(v, (list, tuple)) else (v,):
            if isinstance(leaf, cls):
                found.append(leaf)
    return found


# ---- our own consistency -------------------------------------------------------------------------------------------


def layout_independent(op, sample, dtype):
    """The op gives the same bits for every memory layout as for the contiguous copy.

    A plugin's op may differ by roundings: libraries add up in another order when elements are far apart.
    """
    if is_random(op):
        return
    for name, layout in layouts.KEEP_SHAPE.items():
        got = layouts.laid_out(sample, layout)
        if got is None:
            continue
        args, kwargs = got
        plain = layouts.map_tensors(args, _copied), layouts.map_tensors(kwargs, _copied)
        one, two = _outcome(op, args, kwargs), _outcome(op, *plain)
        what = f"{op.name} {sample} in {dtype}, {name}: {one!r} differs from contiguous {two!r}"
        if isinstance(one, RuntimeError) or isinstance(two, RuntimeError):
            if repr(one) != repr(two):
                raise AssertionError(what)
        elif op.record.owner == BUILTIN:
            if not compare.same_bits(one, two):
                raise AssertionError(what)
        else:
            compare.assert_close(one, two, dtype, what)


def _outcome(op, args, kwargs):
    """What the op gives, or the error by which it refuses these values: a matrix of repeated rows is singular."""
    try:
        return call(op, args, kwargs)
    except RuntimeError as refusal:
        return refusal


def _copied(t):
    return t.detach().clone(memory_format=tg.contiguous_format)


def thread_independent(op, sample, dtype):
    """One thread and three give the same bits on operands large enough to be cut; False when the op refuses them."""
    factor = layouts.growth(sample, 200_000)
    if factor == 1 or is_random(op):
        return False
    args = layouts.map_tensors(sample.args, lambda t: layouts.enlarge(t, factor))
    kwargs = layouts.map_tensors(sample.kwargs, lambda t: layouts.enlarge(t, factor))
    before, found = tg.get_num_threads(), []
    try:
        for threads in (1, 3):
            tg.set_num_threads(threads)
            try:
                found.append(call(op, args, kwargs))
            except (RuntimeError, IndexError, ValueError, TypeError, MemoryError):
                return False
    finally:
        tg.set_num_threads(before)
    if any(isinstance(r, tg.Tensor) and r.numel() > 1 << 24 for r in compare.flatten(found[0])):
        return False  # a view that repeats its operand without end
    if not compare.same_bits(*found):
        raise AssertionError(f"{op.name} {sample} in {dtype}: one thread and three differ")
    return True


def survives_odd_shapes(op, sample):
    """0-d and empty operands give a result or a clean error."""
    for name, layout in layouts.CHANGE_SHAPE.items():
        got = layouts.laid_out(sample, layout)
        if got is None:
            continue
        try:
            call(op, *got)
        except (RuntimeError, ValueError, IndexError, TypeError) as refusal:
            if "must match the size" in str(refusal):  # operands of several shapes, emptied, need not broadcast
                continue
            if op.kernel_kind == "pointwise" and op.record.samples is None:
                raise AssertionError(f"{op.name} refuses {name} operands") from refusal


def inplace_form(op):
    """The in-place method, or the function where there is only that."""
    name = op.schema.name + "_"
    found = registry.methods.get(name)
    for prefix in (*registry.prefixes(op.record), "_fused."):
        found = found or registry.functions.get(prefix + name)
    return found


def inplace_agrees(op, sample, dtype):
    """The in-place form leaves in self what the plain form returns, or both refuse."""
    self = sample.args[0]
    target = self.detach().clone()
    try:
        expected = call(op, sample.args, sample.kwargs)
    except RuntimeError:
        return
    if not isinstance(expected, tg.Tensor):
        return
    method = inplace_form(op)
    tg.manual_seed(0)
    fits = expected.shape == self.shape or op.is_view_op
    if not fits or not tg.can_cast(expected.dtype, self.dtype):
        try:
            method(target, *sample.args[1:], **sample.kwargs)
        except RuntimeError:
            return
        raise AssertionError(f"{op.name}_ {sample} in {dtype}: accepted a target of shape {self.shape}, {self.dtype}")
    version = target._version
    with tg.no_grad():
        try:
            got = method(target, *sample.args[1:], **sample.kwargs)
        except RuntimeError as refusal:
            if "is not supported for" in str(refusal):
                return
            raise
    if got is not target:
        raise AssertionError(f"{op.name}_: returned another tensor")
    if target._version != version + 1:
        raise AssertionError(f"{op.name}_: version went from {version} to {target._version}")
    compare.assert_close(target.to(expected.dtype), expected, dtype, f"{op.name}_ {sample} in {dtype}")


def out_agrees(op, sample, dtype):
    """out= fills the tensors it is given, resizing empty ones, and returns them."""
    with tg.no_grad():
        tg.manual_seed(0)
        expected = function(op)(*sample.args, **sample.kwargs)
        several = not isinstance(expected, tg.Tensor)
        wanted = list(expected) if several else [expected]
        for shape in ("right", "empty"):
            outs = [tg.empty(w.shape if shape == "right" else (0,), dtype=w.dtype) for w in wanted]
            got = call(op, sample.args, {**sample.kwargs, "out": tuple(outs) if several else outs[0]})
            if op.schema.returns[0].is_list:  # as of PyTorch's
                if got is not None:
                    raise AssertionError(f"{op.name}(out=): returned {got!r}")
            elif (list(got) if several else [got])[0] is not outs[0]:
                raise AssertionError(f"{op.name}(out=): returned another tensor")
            if not is_random(op) and not compare.same_bits(outs, wanted):
                raise AssertionError(f"{op.name}(out=) {sample} in {dtype}: {outs} differs from {wanted}")


def shape_rule_agrees(op, sample, dtype):
    """The op on meta tensors gives the shapes and dtypes of the real result."""
    if tagged(op, "data_dependent"):
        return
    real = call(op, sample.args, sample.kwargs)
    kwargs = layouts.map_tensors(sample.kwargs, _to_meta)
    if any(a.type == "Device" for a in op.schema.args) and op.schema.args[0].name != "self":
        kwargs["device"] = "meta"  # what makes a tensor from nothing, or from numbers that may be on another device
    fake = call(op, layouts.map_tensors(sample.args, _to_meta), kwargs)
    real, fake = compare.flatten(real), compare.flatten(fake)
    if len(real) != len(fake):
        raise AssertionError(f"{op.name} {sample} in {dtype}: meta gives {len(fake)} results, real {len(real)}")
    for r, f in zip(real, fake):
        if isinstance(r, tg.Tensor):
            if not isinstance(f, tg.Tensor):
                raise AssertionError(f"{op.name} {sample}: meta gives {f!r}, expected a tensor")
            if f.device.type != "meta":
                raise AssertionError(f"{op.name} {sample}: result on {f.device}, expected meta")
            if (tuple(r.shape), r.dtype) != (tuple(f.shape), f.dtype):
                raise AssertionError(
                    f"{op.name} {sample} in {dtype}: meta gives {f.shape} {f.dtype}, real {r.shape} {r.dtype}"
                )


def _to_meta(t):
    return tg.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")


def backward_runs(op, sample, what):
    """Backward does not refuse what forward has computed; False when forward refuses or no result has a history."""
    inputs = [t for t in leaves(sample.args, sample.kwargs, tg.Tensor) if t.requires_grad]
    try:
        result = call(op, sample.args, sample.kwargs)
    except (RuntimeError, TypeError, ValueError, IndexError):  # NotImplementedError is a RuntimeError
        return False
    results = [r for r in compare.flatten(result) if isinstance(r, tg.Tensor) and r.requires_grad]
    if not results or not inputs:
        return False
    try:
        tg.autograd.grad(results, inputs, [tg.ones_like(r) for r in results], allow_unused=True)
    except RuntimeError as refusal:
        raise AssertionError(f"{what}: forward computes it, backward refuses: {refusal}") from refusal
    return True


def complex_factors(op, sample):
    """The sample with complex numbers for the op's arguments of type Scalar; None when it has none or refuses them."""
    places = {a.name: i for i, a in enumerate(a for a in op.schema.args if not a.kwarg_only)}
    names = [a.name for a in op.schema.args if a.type == "Scalar" and not a.is_list]
    args, kwargs = list(sample.args), dict(sample.kwargs)
    for name, value in zip(names, (1.5 - 0.5j, 0.75 + 2j)):
        if places.get(name, len(args)) < len(args):
            args[places[name]] = value
        else:
            kwargs[name] = value
    try:
        call(op, args, kwargs)
    except (RuntimeError, TypeError):
        return None
    return sampling.Sample(*args, **kwargs) if names else None


def derivatives_check(op, sample, order, fast_mode=False):
    """gradcheck (order 1) or gradgradcheck (order 2) on the sample's floating tensors; False when there is none."""
    inputs = [t for t in leaves(sample.args, sample.kwargs, tg.Tensor) if t.requires_grad]
    if not inputs or not all(t.is_contiguous() for t in inputs):
        return False

    def run(*tensors):
        fresh = iter(tensors)
        swap = lambda t: next(fresh) if t.requires_grad else t
        args = layouts.map_tensors(sample.args, swap)
        kwargs = layouts.map_tensors(sample.kwargs, swap)
        result = call(op, op.record.valid(*args) if op.record.valid else args, kwargs)
        return (
            tuple(r for r in compare.flatten(result) if isinstance(r, tg.Tensor) and r.requires_grad)
            if tg.is_grad_enabled() and any(t.requires_grad for t in tensors)
            else result
        )

    out = run(*inputs)
    if not any(isinstance(r, tg.Tensor) and r.requires_grad and r.numel() for r in compare.flatten(out)):
        return False
    check = tg.autograd.gradcheck if order == 1 else tg.autograd.gradgradcheck
    check(run, tuple(inputs), fast_mode=fast_mode)
    return True
