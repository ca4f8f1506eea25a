"""PyTorch's own table of op samples (`op_db`), run on this package wherever it has the op.

Each entry of that table knows inputs that its authors thought worth testing. Values, dtypes, shapes, whether a
gradient is carried, and the gradients of float64 samples must agree; where PyTorch raises, so must we.
"""

import importlib.util
import types
import warnings

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing.compare import assert_close, flatten

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("expecttest") is None:
    pytest.skip(
        "PyTorch and expecttest, which its table of samples imports, are not installed", allow_module_level=True
    )

import torch

from tests.helpers.pytorchs_tables import op_db

AT_MOST = 20  # samples of one entry and dtype
DTYPES = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool)

# entries whose samples show a difference that is meant, with the reason
DIFFERENT = {
    "as_strided": "the views reach beyond the memory that is handed over",
    "as_strided_scatter": "PyTorch's gradient of self is that of what was replaced, which its own gradcheck refuses",
    "argsort": "the order of equal elements is nobody's promise",
    "batch_norm": "one-dimensional empty input is refused",
    "eig": "vectors are determined up to a phase; tests/test_every_op.py compares their magnitudes",
    "eigh": "vectors are determined up to a sign; tests/test_every_op.py compares their magnitudes",
    "embedding": "sparse gradients do not exist here",
    "index_fill": "PyTorch counts a repeated index twice in the gradient of value",
    "kthvalue": "which of several equal elements is named is nobody's promise",
    "max_pool2d_with_indices_backward": "tests an internal function through the public one's arguments",
    "mode": "which of several equal elements is named is nobody's promise",
    "median": "which of several equal elements is named is nobody's promise",
    "nanmedian": "which of several equal elements is named is nobody's promise",
    "native_batch_norm": "evaluation returns the statistics that it used, PyTorch empty ones",
    "pca_lowrank": "vectors are determined up to a sign, and the random directions are other ones",
    "polygamma": "at its poles PyTorch's int8 path gives a large number instead of infinity",
    "sort": "the order of equal elements is nobody's promise",
    "sum_to_size": "PyTorch widens int32 where there is nothing to sum",
    "sparse.mm": "its samples are of the layout sparse_csr, which is not here",
    "svd_lowrank": "vectors are determined up to a sign, and the random directions are other ones",
    "topk": "which of several equal elements is named is nobody's promise",
}

# entries of one tensor whose results are compared with PyTorch's of twice the width, and why not with its own
TWICE_AS_WIDE = {"matrix_exp": "squaring loses digits, of which single precision has none to spare"}
WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def ours(value):
    """A PyTorch value as ours, sharing no memory."""
    if isinstance(value, torch.Tensor):
        value, needs = value.detach().resolve_conj().resolve_neg(), value.requires_grad
        if value.dtype in (torch.bfloat16, torch.complex32):  # which NumPy has not
            wide = value.cfloat() if value.is_complex() else value.float()
            return tg.from_numpy(wide.numpy()).to(ours(value.dtype)).requires_grad_(needs)
        return tg.from_numpy(value.numpy(force=True).copy(order="K")).requires_grad_(needs)
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return getattr(tg, str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return tg.device(str(value))
    if isinstance(value, torch.layout):
        return getattr(tg, str(value).rpartition(".")[2])
    if isinstance(value, torch.nn.LinearCrossEntropyOptions):
        return tg.nn.LinearCrossEntropyOptions(**{k: ours(getattr(value, k)) for k in value.__slots__})
    if isinstance(value, torch.nn.PairwiseDistance):
        return tg.nn.PairwiseDistance(value.norm, value.eps, value.keepdim)
    if isinstance(value, torch.Generator):
        return tg.Generator()
    if isinstance(value, (list, tuple)):
        return type(value)([ours(v) for v in value]) if type(value) in (list, tuple) else tuple(map(ours, value))
    if isinstance(value, dict):
        return {k: ours(v) for k, v in value.items()}
    return value


def _seeded(fn, *args, **kwargs):
    tg.manual_seed(42)
    return fn(*args, **kwargs)


def is_written(fn):
    """Whether the table itself wrote a function."""
    return isinstance(fn, types.FunctionType) and fn.__module__.startswith("torch.testing._internal")


def rewritten(fn):
    """A function of the table with our package in PyTorch's place."""
    names = {**fn.__globals__, "torch": tg, "wrapper_set_seed": _seeded}
    swapped = types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, fn.__closure__)
    swapped.__kwdefaults__ = fn.__kwdefaults__
    return swapped


def function_of(entry):
    """Our function for an entry of the table, or None. Its lambdas are run with our package in PyTorch's place."""
    fn = entry.op
    if is_written(fn):
        return rewritten(fn)
    if isinstance(fn, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        packet, _, overload = str(fn).removeprefix("aten.").partition(".")
        found = getattr(tg.ops.aten, packet, None)
        return getattr(found, overload, None) if overload else found
    if fn is getattr(torch.Tensor, entry.name, None):
        return getattr(tg.Tensor, entry.name, None)
    found = tg
    for part in entry.name.split("."):
        found = getattr(found, part, None)
    if found is None and fn is getattr(torch, getattr(fn, "__name__", ""), None):  # an entry under another name
        found = getattr(tg, fn.__name__, None)
    return found if callable(found) else None


def leaves(value, kind):
    """Tensors of a nest of values that gradients are asked for."""
    if isinstance(value, kind):
        return [value] if value.requires_grad and value.is_leaf else []
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for v in value for leaf in leaves(v, kind)] if isinstance(value, (list, tuple)) else []


def gradients_agree(theirs, args, want, got, what):
    """Compare the gradients of all leaves for the same random gradients of the outputs."""
    pairs = [(w, g) for w, g in zip(flatten(want), flatten(got)) if isinstance(w, torch.Tensor) and w.requires_grad]
    sources, targets = leaves(theirs, torch.Tensor), leaves(args, tg.Tensor)
    if not pairs or not sources:
        return
    rng = np.random.default_rng(0)
    seeds = [torch.from_numpy(np.array(rng.standard_normal(tuple(w.shape)))).to(w.dtype) for w, _ in pairs]
    try:
        expected = torch.autograd.grad([w for w, _ in pairs], sources, seeds, allow_unused=True)
    except RuntimeError:
        return  # PyTorch itself has no derivative there
    outputs = [g.to_dense() if g.is_sparse else g for _, g in pairs]  # gradients go through dense ones
    found = tg.autograd.grad(outputs, targets, [ours(s) for s in seeds], allow_unused=True)
    for k, (e, f) in enumerate(zip(expected, found)):
        e = np.zeros(tuple(targets[k].shape)) if e is None else e.detach().numpy(force=True)
        f = np.zeros(tuple(targets[k].shape)) if f is None else f.detach().numpy()
        coarse = 1e3 if e.dtype in (np.float32, np.complex64) else 1  # an argument of its own dtype
        np.testing.assert_allclose(f, e, 1e-7 * coarse, 1e-8 * coarse, err_msg=f"{what}: gradient {k}")


def check(entry, fn, number, sample, dtype):
    """One sample through both libraries. Returns False when the op turns out to be missing here."""
    theirs = (sample.input, sample.args, sample.kwargs)
    args = (ours(sample.input), ours(sample.args), ours(sample.kwargs))
    what = f"{entry.name}.{entry.variant_test_name}: {dtype}, sample {number}"
    try:
        want, refused = entry(sample.input, *sample.args, **sample.kwargs), None
        if entry.name in TWICE_AS_WIDE and dtype in WIDE:
            want = entry(sample.input.to(WIDE[dtype])).to(dtype)
    except Exception as error:  # whatever PyTorch raises, we have to refuse too
        want, refused = None, error
    try:
        got = fn(args[0], *args[1], **args[2])
    except AttributeError as error:
        if "has no attribute" in str(error):
            return False
        raise
    except Exception as error:
        assert refused is not None, f"{what} raised {error!r}"
        return True
    assert refused is None, f"{what}: PyTorch raises {refused!r}"
    if "empty" in entry.name or "resize" in entry.name:
        return True
    assert_close(got, want, str(dtype)[6:], what, factor=5.0)
    for w, g in zip(flatten(want), flatten(got)):
        if isinstance(w, torch.Tensor):
            assert w.requires_grad == g.requires_grad, f"{what}: requires_grad is {g.requires_grad}"
    gradients_agree(theirs, args, want, got, what)
    return True


ENTRIES = {}
for _entry in op_db:
    if function_of(_entry) is not None and not {_entry.name, _entry.name.rpartition(".")[2]} & DIFFERENT.keys():
        ENTRIES.setdefault(_entry.name, []).append(_entry)


@pytest.mark.parametrize("name", ENTRIES)
def test_agrees_on_pytorchs_own_samples(name):
    ran = 0
    for entry in ENTRIES[name]:
        for dtype in DTYPES:
            if not entry.supports_dtype(dtype, "cpu"):
                continue
            grads = dtype is torch.float64 and entry.supports_autograd
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.manual_seed(0)
                for k, sample in enumerate(entry.sample_inputs("cpu", dtype, requires_grad=grads)):
                    if k == AT_MOST or not check(entry, function_of(entry), k, sample, dtype):
                        break
                    ran += 1
    if not ran:
        pytest.skip("the op behind these samples does not exist here yet")
