"""How many ops agree with PyTorch in every way: python -m tools.op_samples [entry ...]

Every entry of PyTorch's own table of op samples, asked in seven ways: its results, its first and second gradients,
each dtype that PyTorch takes on the cpu, the errors that the table lists, out=, and the in-place form. A way that an
entry does not have counts as kept. Prints the shares, then for each way what failed and why.
"""

import collections
import re
import sys
import warnings

import torch

import tinygrad_ext as tg
from tests.helpers.pytorchs_tables import op_db
from tests.test_pytorch_samples import DIFFERENT, function_of, is_written, leaves, ours, rewritten
from tinygrad_ext.testing.compare import flatten
from tools.dtypes import backward, forward, same, widened

AT_MOST = 8  # samples of one entry and dtype
PLAIN = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool)

# entries that are not asked, and why
LEFT_OUT = {
    "jiterator_.*": "compiles CUDA source",
    r"sparse\..*": "its samples are of the layout sparse_csr, which is not here",
    r"torch\._scaled_mm.*|torch\.ops\.aten\._(flash|efficient)_attention_forward": "runs on CUDA only",
}


def reason(entry):
    """Why an entry is not asked, or None."""
    return next((why for name, why in LEFT_OUT.items() if re.fullmatch(name, entry.name)), None)


def samples(entry, dtype, requires_grad=False):
    """The first samples of a dtype, none where the table makes none."""
    torch.manual_seed(0)
    try:
        return [s for _, s in zip(range(AT_MOST), entry.sample_inputs("cpu", dtype, requires_grad=requires_grad))]
    except Exception:
        return []


def results(entry, fn):
    """Results in the plain dtypes."""
    for dtype in PLAIN:
        if dtype in entry.dtypes:
            for sample in samples(entry, dtype):
                yield lambda sample=sample: forward(entry, fn, sample)


def every_dtype(entry, fn):
    """Results in all the others that PyTorch takes."""
    for dtype in entry.dtypes - set(PLAIN):
        for sample in samples(entry, dtype):
            yield lambda sample=sample: forward(entry, fn, sample)


def precise(entry):
    """The dtypes to differentiate in: float64, or complex128 where the table takes no real numbers."""
    return [d for d in (torch.float64, torch.complex128) if d in entry.dtypes][:1]


def gradient(entry, fn):
    """First gradients in float64."""
    for dtype in precise(entry) if entry.supports_autograd else ():
        for sample in samples(entry, dtype, True):
            yield lambda sample=sample: backward(entry, fn, sample)


def second(entry, fn, sample):
    """Gradients of the gradients, by both."""
    theirs = (sample.input, sample.args, sample.kwargs)
    args = ours(theirs)
    try:
        want = [w for w in flatten(entry(theirs[0], *theirs[1], **theirs[2])) if isinstance(w, torch.Tensor)]
        places = [k for k, w in enumerate(want) if w.requires_grad]
        sources = leaves(theirs, torch.Tensor)
        seeds = [torch.randn_like(want[k], requires_grad=False) for k in places]
        first = torch.autograd.grad([want[k] for k in places], sources, seeds, allow_unused=True, create_graph=True)
        kept = [k for k, g in enumerate(first) if g is not None and g.requires_grad]
        more = [torch.randn_like(first[k], requires_grad=False) for k in kept]
        expected = torch.autograd.grad([first[k] for k in kept], sources, more, allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return  # PyTorch itself has no derivative there
    got, targets = flatten(fn(args[0], *args[1], **args[2])), leaves(args, tg.Tensor)
    found = tg.autograd.grad(
        [got[k] for k in places], targets, [ours(s) for s in seeds], allow_unused=True, create_graph=True
    )
    pairs = [(found[k], ours(s)) for k, s in zip(kept, more) if found[k] is not None and found[k].requires_grad]
    if pairs:
        found = tg.autograd.grad([f for f, _ in pairs], targets, [s for _, s in pairs], allow_unused=True)
    else:
        found = [None] * len(targets)
    for source, e, f in zip(sources, expected, found):
        if e is not None or f is not None:
            zero = torch.zeros_like(source) if e is None else e
            same(ours(zero.detach()) * 0 if f is None else f, zero, entry)


def second_gradient(entry, fn):
    """Second gradients in float64."""
    for dtype in precise(entry) if entry.supports_autograd and entry.supports_gradgrad else ():
        for sample in samples(entry, dtype, True):
            yield lambda sample=sample: second(entry, fn, sample)


def sharing(value, memories):
    """A PyTorch value as ours, where what is one tensor is one, and what shares memory shares it too."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(sharing(v, memories) for v in value)
    if isinstance(value, dict):
        return {k: sharing(v, memories) for k, v in value.items()}
    if not isinstance(value, torch.Tensor) or value.is_conj() or value.is_neg() or value.layout is not torch.strided:
        return ours(value)
    if id(value) not in memories:
        memories[id(value)] = placed(value, memories)
    return memories[id(value)]


def placed(value, memories):
    """A tensor as ours, over the memory that was made for its storage."""
    window = (value.shape, value.stride(), value.storage_offset())
    if value.device.type == "meta":
        return tg.empty_strided(*window[:2], dtype=ours(value.dtype), device="meta")
    memory = value.untyped_storage()
    key = (memory.data_ptr(), value.dtype) if memory.nbytes() else (id(value), value.dtype)
    if key not in memories:
        count = memory.nbytes() // value.itemsize
        memories[key] = ours(value.detach().as_strided((count,), (1,), 0))
    return memories[key].as_strided(*window).requires_grad_(value.requires_grad)


def refused(entry, fn, case):
    """One case of the table's errors: the type must be right, the words are ours."""
    sample = case.sample_input
    try:  # before PyTorch resizes what it then refuses
        args = sharing((sample.input, sample.args, sample.kwargs), {})
    except RuntimeError as error:  # such a tensor does not exist here
        args = error
    try:
        entry(sample.input, *sample.args, **sample.kwargs)
        return  # an error of other devices
    except Exception as error:
        kind = type(error)
    try:
        if isinstance(args, RuntimeError):
            raise args
        fn(args[0], *args[1], **args[2])
    except Exception as error:
        allowed = (kind, NotImplementedError)
        if hasattr(fn, "__objclass__") and not isinstance(sample.input, torch.Tensor):
            allowed += (TypeError,)  # a method of something else is Python's to refuse; PyTorch's is a Python function
        assert isinstance(error, allowed), f"raises {error!r}, PyTorch {kind}"
        return
    raise AssertionError(f"accepts what PyTorch refuses: {case.error_regex[:80]}")


def errors(entry, fn):
    """What the table says must raise."""
    if entry.error_inputs_func is not None:
        for case in entry.error_inputs("cpu"):
            yield lambda case=case: refused(entry, fn, case)


def into(entry, fn, sample):
    """One sample with out=. What is written must be the result: of some ops PyTorch leaves its own out half empty."""
    try:
        want = entry(sample.input, *sample.args, **sample.kwargs)
        outs = [torch.empty_like(w) for w in flatten(want)]
        theirs = outs[0] if isinstance(want, torch.Tensor) else outs
        returned = entry(sample.input, *sample.args, **sample.kwargs, out=theirs)
    except Exception:
        return
    args, targets = ours((sample.input, sample.args, sample.kwargs)), ours([torch.empty_like(w) for w in outs])
    wide = widened((sample.input, sample.args, sample.kwargs))
    exact = lambda: entry(wide[0], *wide[1], **wide[2])
    got = fn(args[0], *args[1], **args[2], out=targets[0] if isinstance(want, torch.Tensor) else tuple(targets))
    same(got, want if returned is not None else None, entry, exact)
    same(targets, want, entry, exact)


def with_out(entry, fn):
    """Results written into tensors that are handed over."""
    dtype = torch.float32 if torch.float32 in entry.dtypes else min(entry.dtypes, key=str)
    if entry.supports_out:
        for sample in samples(entry, dtype):
            yield lambda sample=sample: into(entry, fn, sample)


def changed(mine, sample, theirs, entry):
    """One sample through the in-place form. What it draws, it draws from the same seed."""
    args = ours((sample.input, sample.args, sample.kwargs))
    start = sample.input.clone()
    torch.manual_seed(42)
    tg.manual_seed(42)
    try:
        kept = theirs(start, *sample.args, **sample.kwargs) is start
    except Exception as error:
        kind = type(error)
    else:
        got = mine(args[0], *args[1], **args[2])
        assert got is args[0] or not kept, "the form does not return its tensor"
        return same(args[0], start, entry)
    try:
        mine(args[0], *args[1], **args[2])
    except kind:
        return None
    raise AssertionError(f"accepts in place what PyTorch refuses with {kind.__name__}")


def in_place(entry, fn):
    """The in-place method or function, also where it has to refuse a result that does not fit."""
    theirs = entry.inplace_variant
    if theirs is not None and hasattr(theirs, "__name__"):
        mine = rewritten(theirs) if is_written(theirs) else getattr(tg.Tensor, theirs.__name__)
        for dtype in entry.dtypes & {torch.float32, torch.int64}:
            for sample in samples(entry, dtype):
                yield lambda sample=sample: changed(mine, sample, theirs, entry)


WAYS = (results, gradient, second_gradient, every_dtype, errors, with_out, in_place)


def failure(way, entry):
    """The first thing that is wrong with one entry in one way, in words, or None."""
    fn = function_of(entry)
    if fn is None:
        return "does not exist"
    try:
        for check in way(entry, fn):
            check()
    except Exception as error:
        text = str(error).strip().split("\n", 1)[0]
        return text if isinstance(error, AssertionError) else f"{type(error).__name__}: {text}"
    return None


def main(names):
    """Print the shares and what failed."""
    failed, total, clean = collections.defaultdict(dict), 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in op_db:
            if reason(entry) or (names and entry.name not in names):
                continue
            meant = entry.name.rpartition(".")[2] in DIFFERENT
            found = {way.__name__: failure(way, entry) for way in WAYS if not (meant and way is not errors)}
            total += 1
            clean += not any(found.values())
            for way, text in found.items():
                if text is not None:
                    failed[way][entry.formatted_name] = text
    print(f"{clean} of {total} entries agree in every way, {100 * clean / total:.1f} %")
    for way in WAYS:
        lost = failed[way.__name__]
        print(f"\n{way.__name__}: {total - len(lost)} of {total}, {100 * (1 - len(lost) / total):.1f} %")
        for name, text in sorted(lost.items(), key=lambda item: item[::-1]):
            print(f"    {name}: {text[:150]}")


if __name__ == "__main__":
    main(sys.argv[1:])
