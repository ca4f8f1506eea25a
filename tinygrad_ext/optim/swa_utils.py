"""Averages of a model's weights over its training: stochastic weight averaging, moving averages."""

import copy
import itertools
import math

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.nn import Module

from .cycles import check_strategy, per_group
from .schedule import LRScheduler

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay):
    if not 0 <= decay <= 1:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


@boundary
def get_ema_multi_avg_fn(decay=0.999):
    """A function for `AveragedModel`'s ``multi_avg_fn``: ``decay * average + (1 - decay) * value``.

    Raises:
        ValueError: ``decay`` is not in [0, 1].
    """
    one = get_ema_avg_fn(decay)

    def update(averages, values, n_averaged):
        with tg.no_grad():
            for average, value in zip(averages, values):
                if average.is_floating_point() or average.is_complex():
                    average.lerp_(value, 1 - decay)
                else:
                    average.copy_(one(average, value, n_averaged))

    return update


@boundary
def get_ema_avg_fn(decay=0.999):
    """A function for `AveragedModel`'s ``avg_fn``: ``decay * average + (1 - decay) * value``.

    Raises:
        ValueError: ``decay`` is not in [0, 1].
    """
    _check_decay(decay)

    def update(average, value, n_averaged):
        with tg.no_grad():
            return decay * average + (1 - decay) * value

    return update


@boundary
def get_swa_multi_avg_fn():
    """A function for `AveragedModel`'s ``multi_avg_fn``: the mean of all values."""
    one = get_swa_avg_fn()

    def update(averages, values, n_averaged):
        with tg.no_grad():
            for average, value in zip(averages, values):
                average.copy_(one(average, value, n_averaged))

    return update


@boundary
def get_swa_avg_fn():
    """A function for `AveragedModel`'s ``avg_fn``: the mean of all values, which is the default."""

    def update(average, value, n_averaged):
        with tg.no_grad():
            return average + (value - average) / (n_averaged + 1)

    return update


@boundary
class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that ``update_parameters`` is given.

    Args:
        model: the model to copy, as ``module``.
        device: where the averages stand; None for where the model does.
        avg_fn: ``f(average, value, n_averaged)`` returns the next average of one parameter; the mean by default.
        multi_avg_fn: ``f(averages, values, n_averaged)`` changes a list of averages in place.
        use_buffers: average the buffers too; else they are copied.

    Raises:
        AssertionError: both functions are given.

        >>> import tinygrad_ext as tg
        >>> model = tg.nn.Linear(1, 1, bias=False)
        >>> average = tg.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0, 6.0):
        ...     _ = model.weight.data.fill_(value)
        ...     average.update_parameters(model)
        >>> average.module.weight.item()
        3.0
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tg.tensor(0, dtype=tg.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model):
        """Take the parameters of ``model``, which are as many as ours, into the averages."""
        averages, values = self._averaged(self.module), self._averaged(model)
        with tg.no_grad():
            if self.n_averaged == 0:
                for average, value in zip(averages, values):
                    average.copy_(value)
            else:
                self._average(averages, [v.to(a.device) for a, v in zip(averages, values)])
            if not self.use_buffers:
                for ours, theirs in zip(self.module.buffers(), model.buffers()):
                    ours.copy_(theirs)
            self.n_averaged += 1

    def _averaged(self, model):
        buffers = model.buffers() if self.use_buffers else ()
        return [tensor.detach() for tensor in itertools.chain(model.parameters(), buffers)]

    def _average(self, averages, values):
        if self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, values, self.n_averaged)
            return
        one = self.avg_fn or get_swa_avg_fn()
        for average, value in zip(averages, values):
            average.copy_(one(average, value, self.n_averaged))


@boundary
def update_bn(loader, model, device=None):
    """Compute the statistics of a model's batch norms anew, with one pass in training mode over ``loader``.

    Args:
        loader: gives batches; of a list or tuple the first entry is the input.
        model: is put back into the mode in which it was.
        device: where batches are moved to, if given.
    """
    norms = {module: module.momentum for module in model.modules() if isinstance(module, _BATCH_NORMS)}
    if not norms:
        return
    for module in norms:
        module.reset_running_stats()
        module.momentum = None  # the mean over all batches
    training = model.training
    model.train()
    with tg.no_grad():
        for batch in loader:
            value = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(value if device is None else value.to(device))
    for module, momentum in norms.items():
        module.momentum = momentum
    model.train(training)


_BATCH_NORMS = tuple(
    getattr(nn, name) for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm") if hasattr(nn, name)
)


@boundary
class SWALR(LRScheduler):
    """Go to the constant ``swa_lr`` in ``anneal_epochs`` epochs.

    Args:
        optimizer: whose groups are changed.
        swa_lr: the value at the end, one or one per group.
        anneal_epochs: how long the way is; 0 for a jump.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: a list of another length, an unknown strategy, or no count of epochs.
    """

    def __init__(self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy="cos", last_epoch=-1):
        check_strategy(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, value in zip(optimizer.param_groups, per_group("swa_lr", swa_lr, optimizer)):
            group["swa_lr"] = value
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step):
        step = min(1.0, max(0.0, step / max(1, self.anneal_epochs)))
        return step if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * step)) / 2

    def get_lr(self):
        """Return the value of each group for ``last_epoch``."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        values = []
        for group in self.optimizer.param_groups:
            lr, end = group["lr"], group["swa_lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            values.append(end * now + start * (1 - now))
        return values
