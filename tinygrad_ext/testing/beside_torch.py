"""One op beside PyTorch's op of the same name: values, dtypes and gradients."""

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.testing import compare
from tinygrad_ext.testing.sweep import KINDS, call, leaves, supported, tagged


def to_torch(value, torch, requires_grad=False):
    """Ours to PyTorch's: tensors (copied), dtypes, devices, lists of them."""
    if isinstance(value, tg.Tensor):
        if value.dtype == tg.bfloat16:
            t = torch.tensor(value.float().tolist(), dtype=torch.bfloat16).reshape(tuple(value.shape))
        else:
            t = torch.from_numpy(value.numpy(force=True).copy())
        return t.requires_grad_() if requires_grad and value.requires_grad else t
    if isinstance(value, tg.dtype):
        return getattr(torch, value.name)
    if isinstance(value, tg.Size):
        return tuple(value)
    if isinstance(value, (tg.memory_format, tg.layout)):
        return getattr(torch, repr(value).rpartition(".")[2])
    if isinstance(value, dict):
        return {k: to_torch(v, torch, requires_grad) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([to_torch(v, torch, requires_grad) for v in value])
    return value


def torch_function(op, torch):
    """PyTorch's callable of the same name, or None."""
    record, name = op.record, op.schema.name
    kinds = registry.variants(record)
    place = torch
    for part in registry.prefixes(record)[0].split("."):
        place = getattr(place, part, None) if part else place
    if "function" in kinds:
        return getattr(place, name, None)
    if "method" in kinds:
        return getattr(torch.Tensor, name, None)
    method = getattr(torch.Tensor, name + "_", None)
    return method and (lambda self, *args, **kwargs: method(self.clone(), *args, **kwargs))


# ops that keep float32 inside where PyTorch rounds each step to the half, so that its products overflow on the way
FINER = {"aten::prod", "aten::prod.dim_int", "aten::matrix_exp", "aten::matrix_exp.linalg"}


def against_torch(op, sample, dtype, torch):
    """Values, shapes, dtypes and, for floating dtypes, gradients equal PyTorch's."""
    if op.name in FINER and dtype in KINDS["half"]:
        return
    fn = torch_function(op, torch)
    what = f"{op.name} {sample} in {dtype}"
    targs, tkwargs = to_torch(sample.args, torch, True), to_torch(sample.kwargs, torch, True)
    if "varargs" in (op.record.tags or "") and isinstance(targs[0], (list, tuple)):
        targs = (*targs[0], *targs[1:])
    torch.default_generator.manual_seed(0)  # torch.manual_seed writes the stack down for each kind of accelerator
    theirs, ours = targs, sample.args
    if op.record.valid:
        theirs, ours = op.record.valid(*targs), op.record.valid(*sample.args)
    try:
        want = fn(*theirs, **tkwargs)
        for t in compare.flatten(want):  # a negative view of what has no negative is refused when it is read
            if isinstance(t, torch.Tensor) and t.is_neg():
                t.resolve_neg()
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError) as refusal:
        if "not implemented for" in str(refusal) or "not support" in str(refusal) or dtype not in supported(op):
            return  # PyTorch lacks this dtype on the cpu, or both refuse it
        raise AssertionError(f"{what}: PyTorch refuses this sample: {refusal}") from refusal
    try:
        got = call(op, ours, sample.kwargs)
    except RuntimeError as missing:
        if isinstance(missing, NotImplementedError) and dtype in KINDS["half"] + KINDS["complex"]:
            return  # these dtypes are for a few ops only
        if not any(t.numel() for t in leaves(sample.args, sample.kwargs, tg.Tensor)):
            return  # with nothing to compute, PyTorch does not come to look at the dtype
        raise AssertionError(f"{what}: PyTorch computes this, we say {missing}") from missing
    want = op.record.determined(want) if op.record.determined else want
    if not tagged(op, "unset"):
        try:
            compare.assert_close(got, want, dtype, what, factor=1.0)
        except AssertionError:
            if dtype not in KINDS["half"] or _agrees_with_itself(want, fn, theirs, tkwargs, dtype, torch, got):
                raise
            return
    _gradients_agree(op, sample, got, want, targs, tkwargs, dtype, torch, what)


def _agrees_with_itself(want, fn, args, kwargs, dtype, torch, got):
    """False where what PyTorch gives of halves is not what it gives of the same numbers in float32, and `got` is.

    By AMX its convolutions of bfloat16 in groups with a dilation read what is not theirs.
    """

    def widened(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(widened, value))
        return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    kwargs = {k: torch.float32 if v in (torch.float16, torch.bfloat16) else widened(v) for k, v in kwargs.items()}
    exact = [w.to(getattr(torch, dtype)) for w in compare.flatten(fn(*widened(args), **kwargs))]

    def near(results):
        try:
            compare.assert_close(results, exact, dtype, "", factor=1.0)
        except AssertionError:
            return False
        return True

    return near(want) or not near(got)


def _gradients_agree(op, sample, got, want, targs, tkwargs, dtype, torch, what):
    ours = [t for t in leaves(sample.args, sample.kwargs, tg.Tensor) if t.requires_grad]
    theirs = [t for t in leaves(targs, tkwargs, torch.Tensor) if t.requires_grad]
    outs = [(g, w) for g, w in zip(compare.flatten(got), compare.flatten(want)) if getattr(w, "requires_grad", False)]
    if not outs or not ours or dtype not in ("float64", "complex128"):
        return
    seeds = [
        torch.linspace(-1, 1, max(w.numel(), 1), dtype=torch.float64)[: w.numel()].reshape(w.shape).to(w.dtype)
        for _, w in outs
    ]
    try:
        wanted = torch.autograd.grad([w for _, w in outs], theirs, seeds, allow_unused=True)
    except RuntimeError as refusal:
        if "is not implemented" in str(refusal):
            return
        if "modified by an inplace operation" in str(refusal):
            return  # PyTorch's own forward wrote over what its derivative needs (vander)
        raise
    for g, _ in outs:
        if not g.requires_grad:
            raise AssertionError(f"{what}: result does not require grad, PyTorch's does")
    found = tg.autograd.grad([g for g, _ in outs], ours, [tg.from_numpy(s.numpy()) for s in seeds], allow_unused=True)
    for i, (f, w) in enumerate(zip(found, wanted)):
        f = tg.zeros_like(ours[i]) if f is None else f
        w = torch.zeros_like(theirs[i]) if w is None else w.clone()  # a ZeroTensor has no memory
        compare.assert_close(f, w, dtype, f"{what}: gradient of tensor {i}")
