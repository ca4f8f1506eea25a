"""Connectionist temporal classification: the loss of labels without places in a longer sequence."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.ops.batching import told
from tinygrad_ext.ops.fused import fused
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample, zeros

# ---- the derivative, which like PyTorch's takes log_probs for what log_softmax gives -------------------------------

_NEVER = float("-inf")


def _back(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """By the kernel; what has the derivative of its derivative is added as zeros where that may be asked for."""
    places = targets, input_lengths, target_lengths, blank, zero_infinity
    found = fused._ctc_loss_backward(log_probs.detach(), *places, grad.detach())
    if not (tg.is_grad_enabled() and (log_probs.requires_grad or grad.requires_grad)):
        return found
    smooth = _gradient(log_probs, *places) * grad.unsqueeze(-1)
    return found + (smooth - smooth.detach())


def _moved(t, n, at=0):
    """t's states n places further (or back), states that nothing comes to as log 0."""
    size = t.shape[-1]
    if abs(n) >= size:
        return tg.full_like(t, _NEVER)
    gap = tg.full_like(t.narrow(-1, 0, abs(n)), _NEVER)
    kept = t.narrow(-1, max(-n, 0), size - abs(n))
    return tg.cat([gap, kept] if n > 0 else [kept, gap], -1)


def _ways(t, skips, back):
    """The logarithm of the sum of what comes to each state from itself and the two before it (or behind it)."""
    n = -1 if back else 1
    far = _moved(t.masked_fill(~skips, _NEVER), n * 2) if back else _moved(t, 2).masked_fill(~skips, _NEVER)
    return tg.stack([t, _moved(t, n), far]).logsumexp(0)


def _states(targets, blank):
    """The labels of a path's states, and to which of them one may go past a blank."""
    blanks = tg.full_like(targets, blank)
    labels = tg.cat([tg.stack([blanks, targets], -1).flatten(-2), blanks.new_full((targets.shape[0], 1), blank)], -1)
    at = tg.arange(labels.shape[1], device=labels.device)
    return labels, ((labels != labels.roll(2, -1)) & (at % 2 == 1) & (at > 1)), at


def _gradient(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    """exp(log_probs) less the probability of each label at each step, given the targets."""
    labels, skips, at = _states(targets, blank)
    steps, ends = input_lengths.unsqueeze(-1), 2 * target_lengths.unsqueeze(-1)
    own = log_probs.gather(2, labels.expand(log_probs.shape[0], *labels.shape))
    own = own.masked_fill(at > ends, _NEVER)
    last, after = (at == ends) | (at == ends - 1), tg.full_like(own[0], _NEVER)
    ahead, behind = [own[0].masked_fill(at > 1, _NEVER)], []
    for row in own[1:]:
        ahead.append(_ways(ahead[-1], skips, False) + row)
    for t in reversed(range(log_probs.shape[0])):
        found = _ways(after, skips, True) + own[t]
        after = tg.where(steps - 1 == t, own[t].masked_fill(~last, _NEVER), found)
        behind.append(after)
    ahead, behind = tg.stack(ahead), tg.stack(behind[::-1])
    never = (ahead == _NEVER) | (behind == _NEVER)
    lost = never.all(2, keepdim=True)  # no way to the end: the loss is infinite
    both = (ahead + behind - own.masked_fill(own == _NEVER, 0)).masked_fill(never, _NEVER).masked_fill(lost, 0)
    share = both.softmax(2).masked_fill(never, 0)
    found = log_probs.exp() - tg.zeros_like(log_probs).scatter_add(2, labels.expand(share.shape), share)
    found = found.masked_fill(lost, 0 if zero_infinity else float("nan"))
    return found.masked_fill(tg.arange(share.shape[0], device=share.device).reshape(-1, 1, 1) >= steps, 0)


def _slope(log_probs, log_probs_tangent, targets, input_lengths, target_lengths, blank, zero_infinity):
    by = _gradient(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    return (by * log_probs_tangent).sum((0, 2))


# ---- batches -------------------------------------------------------------------------------------------------------


@told("_ctc_loss")
def _batched(b, log_probs, *rest):
    rest, shape = _folded(b, rest), log_probs.shape
    found = fused._ctc_loss(_rows(b, log_probs), *rest)
    return found.reshape((b.size, shape[1]))


def _rows(b, log_probs):
    """(batch, T, N, C) as (T, batch * N, C)."""
    whole = b.whole(log_probs).movedim(0, 1)
    return whole.reshape((whole.shape[0], whole.shape[1] * whole.shape[2], whole.shape[3]))


def _folded(b, values):
    return [b.whole(v).flatten(0, 1) if isinstance(v, tg.Tensor) else v for v in values]


@told("_ctc_loss_backward")
def _batched_backward(b, log_probs, *rest):
    found = fused._ctc_loss_backward(_rows(b, log_probs), *_folded(b, rest))
    return found.reshape((found.shape[0], b.size, log_probs.shape[1], found.shape[2])).movedim(1, 0)


# ---- samples and reference -----------------------------------------------------------------------------------------


def _padded(make):
    spoken = make(5, 3, 4, low=-2, high=2)
    lengths = make.of([5, 4, 5]), make.of([2, 2, 0])
    yield Sample(spoken, make.of([[1, 2], [3, 3], [0, 0]]), *lengths, 0, False)
    yield Sample(make(3, 2, 4), make.of([[1, 2, 2], [1, 2, 3]]), make.of([3, 3]), make.of([3, 3]), 0, True)
    yield Sample(make(4, 1, 3), make.of([[0, 2]]), make.of([4]), make.of([2]), 1, False)


def _normal(log_probs, *rest):
    """The derivative is that of log-probabilities, which sum up to one."""
    return (log_probs.log_softmax(2) if log_probs.is_floating_point() else log_probs, *rest)


def _np_ctc(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    import numpy

    lengths = zip(targets, input_lengths, target_lengths)
    total = [sum(p for _, p in _paths(log_probs[:, n], *each, blank)) for n, each in enumerate(lengths)]
    with numpy.errstate(divide="ignore"):
        found = -numpy.log(numpy.asarray(total, float))
    return numpy.where(numpy.isinf(found) & bool(zero_infinity), 0, found)


def _np_back(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, grad):
    import numpy

    found = numpy.zeros(log_probs.shape)
    for n, each in enumerate(zip(targets, input_lengths, target_lengths)):
        steps, paths = int(each[1]), list(_paths(log_probs[:, n], *each, blank))
        if not paths:
            found[:steps, n] = 0 if zero_infinity else numpy.nan
            continue
        found[:steps, n] = numpy.exp(log_probs[:steps, n])
        total = sum(p for _, p in paths)
        for path, p in paths:
            found[range(steps), n, path] -= p / total
    return found * grad[:, None]


def _paths(log_probs, targets, steps, length, blank):
    """All paths, one label a step, that say the targets of a sample, with their probabilities."""
    import itertools

    import numpy

    wanted = [int(w) for w in targets[: int(length)]]
    for path in itertools.product(range(log_probs.shape[1]), repeat=int(steps)):
        if [k for k, before in zip(path, (None, *path)) if k != before and k != blank] == wanted:
            yield path, numpy.exp(sum(log_probs[t, k] for t, k in enumerate(path)))


_ARGUMENTS = "Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths"

op(
    f"aten::_ctc_loss({_ARGUMENTS}, int blank, bool zero_infinity) -> Tensor",
    batch=_batched,
    kernel="ctc_loss",
    variants="function",
    where="_fused",
    types="float",
    grad={"log_probs": _back},
    jvp=_slope,
    valid=_normal,
    samples=_padded,
    reference=_np_ctc,
    doc="ctc_loss of each sample: log_probs (T, N, C), targets (N, S) and the lengths (N).",
)

op(
    f"aten::_ctc_loss_backward({_ARGUMENTS}, int blank, bool zero_infinity, Tensor grad) -> Tensor",
    batch=_batched_backward,
    kernel="ctc_loss_backward",
    variants="function",
    where="_fused",
    types="float",
    samples=lambda make: [
        Sample(*(a.detach() if isinstance(a, tg.Tensor) else a for a in s.args), make(s.args[0].shape[1]).detach())
        for s in _padded(make)
    ],
    reference=_np_back,
    doc="Derivative of _ctc_loss by log_probs, for log_probs that log_softmax gave.",
)

# ---- public --------------------------------------------------------------------------------------------------------


def _lengths(value, name, like):
    if not isinstance(value, tg.Tensor):
        value = tg.tensor([value] if isinstance(value, int) else list(value), dtype=tg.int64)
    if value.is_floating_point() or value.is_complex():
        raise RuntimeError(f"{name} must be integral: ctc_loss got {value.dtype}; convert it with .long()")
    return value.reshape(1) if like.dim() == 2 and value.numel() == 1 else value


def _as_rows(targets, lengths, samples):
    """Targets one after the other as rows, which are as long as the longest one."""
    if targets.numel() != int(lengths.sum()):
        raise RuntimeError(
            f"Expected targets of {int(lengths.sum())} labels, the sum of target_lengths, but ctc_loss got "
            f"{targets.numel()}"
        )
    longest = int(lengths.max()) if samples else 0
    starts = lengths.cumsum(0) - lengths
    at = (starts.unsqueeze(-1) + tg.arange(longest, device=lengths.device)).clamp(0, max(targets.numel() - 1, 0))
    return targets[at] if targets.numel() else targets.new_zeros((samples, longest))


def _ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    if log_probs.dim() not in (2, 3):
        raise RuntimeError(f"ctc_loss: log_probs must be (T, N, C) or (T, C), got shape {list(log_probs.shape)}")
    if targets.is_floating_point() or targets.is_complex():
        raise RuntimeError(f"ctc_loss: targets are class numbers, got {targets.dtype}; convert them with .long()")
    single = log_probs.dim() == 2
    lengths = [
        _lengths(v, name, log_probs)
        for name, v in (("input_lengths", input_lengths), ("target_lengths", target_lengths))
    ]
    whole = log_probs.unsqueeze(1) if single else log_probs
    for name, v in zip(("input_lengths", "target_lengths"), lengths):
        if v.dim() != 1 or v.shape[0] != whole.shape[1]:
            raise RuntimeError(
                f"{name} must be of size batch_size: ctc_loss got {list(v.shape)} for a batch of {whole.shape[1]}"
            )
    rows = targets
    if targets.dim() == 1:
        rows = targets.unsqueeze(0) if single else _as_rows(targets, lengths[1], whole.shape[1])
    loss = fused._ctc_loss(whole, rows, *lengths, blank, zero_infinity)
    if reduction == "mean":
        return (loss / lengths[1].clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction: it is 'none', 'mean' or 'sum'")
    return loss.squeeze(0) if single else loss


def _np_public(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    import numpy

    words = {0: "none", 1: "mean", 2: "sum"}
    each = _np_ctc(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)
    reduction = words.get(reduction, reduction)
    if reduction == "mean":
        return (each / numpy.maximum(target_lengths, 1)).mean()
    return each.sum() if reduction == "sum" else each


def _public(make):
    for sample in _padded(make):
        x, targets, steps, labels, blank, zero_infinity = sample.args
        for reduction in ("mean", "none"):
            yield Sample(x, targets, steps, labels, blank, reduction, zero_infinity)
    yield Sample(make(4, 2, 3), make.of([[1, 2], [2, 0]]), [4, 3], (2, 1), 0, "sum")


_DOC = (
    "Minus the logarithm of the probability that log_probs (T, N, C) or (T, C), from log_softmax, say targets: all "
    "ways to place them among steps, with blanks between and repeated labels. targets (N, S), or one after the other "
    "in one dimension; lengths as tensors or numbers. zero_infinity: 0 for targets that do not fit, instead of "
    "infinity. A mean is taken of losses over target lengths. Labels out of bounds raise IndexError."
)

op(
    "aten::ctc_loss(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths, int blank=0, "
    'str reduction="mean", bool zero_infinity=False) -> Tensor',
    compose=_ctc,
    variants="function",
    where="nn.functional",
    types="float",
    valid=_normal,
    samples=_public,
    reference=_np_public,
    errors=[
        (
            lambda: functions["nn.functional.ctc_loss"](zeros(2, 1, 3), zeros(1, 1), [2], [1]),
            RuntimeError,
            "are class numbers",
        ),
        (
            lambda: functions["nn.functional.ctc_loss"](zeros(2, 1, 3), zeros(1, 1).long(), [3], [1]),
            RuntimeError,
            "Expected input_lengths to have value at least 0 and at most 2, but got value 3",
        ),
        (
            lambda: functions["nn.functional.ctc_loss"](zeros(2, 1, 3), zeros(1, 1).long(), [2], [2]),
            RuntimeError,
            "Expected target_lengths to have value at least 0 and at most 1, but got value 2",
        ),
        (
            lambda: functions["nn.functional.ctc_loss"](zeros(2, 1, 3), zeros(1, 1).long() + 3, [2], [1]),
            IndexError,
            "ctc_loss: targets hold 3",
        ),
        (
            lambda: functions["nn.functional.ctc_loss"](zeros(2, 1, 3), zeros(1, 1).long(), [2, 1], [1]),
            RuntimeError,
            "input_lengths must be of size batch_size",
        ),
        (
            lambda: functions["nn.functional.ctc_loss"](zeros(2, 1, 3), zeros(1, 1).long(), [2], [1], 3),
            RuntimeError,
            "blank must be in label range",
        ),
    ],
    doc=_DOC,
)

op(
    "aten::ctc_loss.number(Tensor log_probs, Tensor targets, Any input_lengths, Any target_lengths, int blank=0, "
    "int reduction=1, bool zero_infinity=False) -> Tensor",
    compose=lambda log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity: _ctc(
        log_probs, targets, input_lengths, target_lengths, blank, ("none", "mean", "sum")[reduction], zero_infinity
    ),
    variants="function",
    types="float",
    valid=_normal,
    samples=lambda make: [Sample(*s.args[:4], s.args[4], 2, s.args[5]) for s in _padded(make)],
    reference=_np_public,
    doc="nn.functional.ctc_loss with a number for the reduction: 0 none, 1 mean, 2 sum.",
)
