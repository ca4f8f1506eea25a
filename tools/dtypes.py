"""How far each dtype goes: python -m tools.dtypes [entry or dtype ...]

Every entry of PyTorch's own table of op samples that this package has, for each dtype that PyTorch takes there on the
cpu, forward and, where PyTorch has a derivative, backward. An entry counts as taken when all of its first samples
agree within PyTorch's tolerances. Two libraries round in different places: below double precision an element agrees
too when it is as near as PyTorch's own to what double precision gives for the same inputs, within those tolerances.
Prints the share for each dtype, with the number of entries that needed this, then what failed, by cause.
"""

import collections
import re
import sys
import warnings

import torch

import tinygrad_ext as tg
from tests.helpers.pytorchs_tables import op_db
from tests.test_pytorch_samples import DIFFERENT, function_of, leaves, ours
from tinygrad_ext.testing.compare import flatten, to_numpy

AT_MOST = 8  # samples of one entry and dtype


TOLERANCES = {  # rtol of torch.testing; its atol is 1e-5 for all of them
    torch.float16: 1e-3,
    torch.bfloat16: 1.6e-2,
    torch.float32: 1.3e-6,
    torch.complex32: 1e-3,
    torch.complex64: 1.3e-6,
}
by_nearness = set()  # names of entries that agreed only by being as near to the exact result


def double(dtype):
    """The dtype of double precision of a dtype's kind."""
    if dtype not in TOLERANCES:
        return dtype
    return torch.complex128 if dtype.is_complex else torch.float64


def widened(x):
    """What a sample holds, in double precision."""
    if isinstance(x, torch.Tensor):
        return x.detach().to(double(x.dtype)).requires_grad_(x.requires_grad) if x.dtype in TOLERANCES else x
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return type(x)(widened(e) for e in x)
    if isinstance(x, dict):
        return {k: widened(v) for k, v in x.items()}
    return double(x) if isinstance(x, torch.dtype) else x


def near(got, want, exact):
    """Whether each element is as near to the exact one as PyTorch's, within PyTorch's tolerances."""
    rtol = TOLERANCES[want.dtype]
    dtype = want.dtype
    got, want, exact = (t.detach().to(double(dtype)) for t in (got, want, exact))
    ours, theirs = (got - exact).abs(), (want - exact).abs()
    alike = (got == want) | (got.isnan() & want.isnan())
    alike |= exact.isfinite() & (got == exact.to(dtype).to(exact.dtype))  # the nearest there is
    theirs = torch.where(theirs.isnan() & exact.isfinite(), 0, theirs)  # no number: ours has to be right by itself
    return bool((alike | (ours <= theirs + 1e-5 + rtol * exact.abs())).all())


def same(got, want, entry, exact=None):
    """AssertionError unless two results agree as torch.testing would ask of this entry.

    exact: a function that gives what PyTorch makes of the sample in double precision, asked where the two differ.
    """
    got, want = flatten(got), flatten(want)
    assert len(got) == len(want), f"{len(got)} results, PyTorch gives {len(want)}"
    for place, (g, w) in enumerate(zip(got, want)):
        if not isinstance(w, torch.Tensor):
            continue
        assert str(g.dtype).rpartition(".")[2] == str(w.dtype).rpartition(".")[2], f"dtype {g.dtype} for {w.dtype}"
        assert str(g.layout).rpartition(".")[2] == str(w.layout).rpartition(".")[2], f"layout {g.layout} for {w.layout}"
        if w.layout is not torch.strided:
            g, w = g.to_dense(), w.to_dense()
        g = torch.from_numpy(to_numpy(g.detach()).copy()).to(w.dtype)
        if "empty" in entry.name or "resize" in entry.name:
            assert g.shape == w.shape, "shape"
            continue
        w = w.detach().resolve_conj().resolve_neg().contiguous()
        try:
            torch.testing.assert_close(g, w, equal_nan=True)
        except AssertionError:
            if exact is None or w.dtype not in TOLERANCES or g.shape != w.shape:
                raise
            if not near(g, w, flatten(exact())[place]):
                raise
            by_nearness.add(entry.formatted_name)


def backward(entry, fn, sample):
    """The gradients of one sample, by both."""
    theirs = (sample.input, sample.args, sample.kwargs)
    args = ours(theirs)
    want, got = entry(theirs[0], *theirs[1], **theirs[2]), fn(args[0], *args[1], **args[2])
    pairs = [(w, g) for w, g in zip(flatten(want), flatten(got)) if isinstance(w, torch.Tensor) and w.requires_grad]
    sources, targets = leaves(theirs, torch.Tensor), leaves(args, tg.Tensor)
    if not pairs or not sources:
        return
    seeds = [torch.randn_like(w, requires_grad=False) for w, _ in pairs]
    try:
        expected = torch.autograd.grad([w for w, _ in pairs], sources, seeds, allow_unused=True)
    except (RuntimeError, NotImplementedError):
        return  # PyTorch itself has no derivative there
    found = tg.autograd.grad([g for _, g in pairs], targets, [ours(s) for s in seeds], allow_unused=True)

    def exactly():
        """PyTorch's gradients in double precision."""
        wide = widened(theirs)
        made = flatten(entry(wide[0], *wide[1], **wide[2]))
        made = [w for w in made if isinstance(w, torch.Tensor) and w.requires_grad]
        return torch.autograd.grad(made, leaves(wide, torch.Tensor), [widened(s) for s in seeds], allow_unused=True)

    for place, (e, f) in enumerate(zip(expected, found)):
        if e is not None or f is not None:
            zero = e if e is not None else torch.zeros_like(sources[place])
            same(ours(zero) * 0 if f is None else f, zero, entry, lambda place=place: exactly()[place])


def forward(entry, fn, sample):
    """The results of one sample, by both."""
    args = ours((sample.input, sample.args, sample.kwargs))
    try:
        want = entry(sample.input, *sample.args, **sample.kwargs)
    except Exception:  # what PyTorch refuses is another test's matter
        return
    wide = widened((sample.input, sample.args, sample.kwargs))
    same(fn(args[0], *args[1], **args[2]), want, entry, lambda: entry(wide[0], *wide[1], **wide[2]))


def cause(error):
    """A failure in words that many failures share."""
    text = str(error).strip().split("\n", 1)[0]
    if "not implemented for" in text:
        return "refused: " + re.sub(r'"[^"]*"', "op", text.split(":")[0])
    if isinstance(error, AssertionError):
        return "differs: " + re.sub(r"[\d.]+", "#", text)[:70]
    return f"{type(error).__name__}: " + re.sub(r"\d+", "#", text)[:90]


def run(entry, dtype, check, requires_grad):
    """None when the samples agree, else the first failure."""
    torch.manual_seed(0)
    fn = function_of(entry)
    try:
        samples = list(zip(range(AT_MOST), entry.sample_inputs("cpu", dtype, requires_grad=requires_grad)))
    except Exception:  # this dtype has no samples
        return None
    for _, sample in samples:
        try:
            check(entry, fn, sample)
        except Exception as error:
            return error
    return None


def sweep(names=(), only=()):
    """({(way, dtype): [taken, all, by nearness]}, {cause: {(way, dtype): names}}), of some entries, of some dtypes."""
    shares = collections.defaultdict(lambda: [0, 0, 0])
    causes = collections.defaultdict(lambda: collections.defaultdict(set))
    for entry in op_db:
        if (
            function_of(entry) is None
            or entry.name in DIFFERENT
            or entry.name.rpartition(".")[2] in DIFFERENT
            or (names and entry.name not in names)
        ):
            continue
        ways = [("forward", forward, entry.dtypes)]
        if entry.supports_autograd:
            ways.append(("backward", backward, entry.backward_dtypes))
        for way, check, dtypes in ways:
            for dtype in dtypes:
                if only and str(dtype)[6:] not in only:
                    continue
                if way == "backward" and not (dtype.is_floating_point or dtype.is_complex):
                    continue
                key = (way, str(dtype)[6:])
                by_nearness.clear()
                error = run(entry, dtype, check, way == "backward")
                shares[key][1] += 1
                shares[key][0] += error is None
                shares[key][2] += error is None and bool(by_nearness)
                if error is not None:
                    causes[cause(error)][key].add(entry.formatted_name)
    return shares, causes


def main(names):
    """Print the shares and the causes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {str(d)[6:] for entry in op_db for d in entry.dtypes}
        shares, causes = sweep([n for n in names if n not in found], [n for n in names if n in found])
    for (way, dtype), (taken, total, nearer) in sorted(shares.items()):
        nearness = f"  {nearer} of them by nearness" if nearer else ""
        print(f"{way:9} {dtype:15} {taken:4} of {total:4}  {100 * taken / total:5.1f} %{nearness}")
    for text, found in sorted(causes.items(), key=lambda c: -sum(map(len, c[1].values()))):
        print(f"\n{sum(map(len, found.values()))}  {text}")
        for (way, dtype), ops in sorted(found.items()):
            print(f"    {way} {dtype}: {' '.join(sorted(ops))}")


if __name__ == "__main__":
    main(sys.argv[1:])
