"""Softmax over many classes, of which a few are frequent."""

from collections import namedtuple
from itertools import pairwise

import tinygrad_ext as tg

from .. import functional as F
from ..module import Module
from .container import ModuleList, Sequential
from .linear import Linear

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-softmax in two steps: a head of the frequent classes and one entry per cluster of rare ones, and their tails.

    Grave et al., Efficient softmax approximation for GPUs (2017).

    Args:
        in_features: last size of the input.
        n_classes: number of classes, numbered from the most frequent one on.
        cutoffs: where the clusters start: classes below the first one are in the head.
        div_value: cluster i projects the input to ``in_features / div_value ** (i + 1)`` features.
        head_bias: whether the head has a bias.

    A call takes (N, in_features) and N classes, or one of each, and returns ``(output, loss)``: the log-probability of
    each target, and minus their mean.

    Raises:
        ValueError: cutoffs that do not rise from 1 to ``n_classes - 1``.
        RuntimeError: shapes that do not belong together, or a target that is no class.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        whole = all(int(cutoff) == cutoff for cutoff in cutoffs)
        if not whole or any(low >= high for low, high in pairwise([0, *cutoffs, n_classes])):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                f"each between 1 and n_classes-1, got {cutoffs} and n_classes={n_classes}"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        where = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **where)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            hidden = int(in_features // div_value ** (i + 1))
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **where), Linear(hidden, high - low, bias=False, **where)
                )
            )

    def reset_parameters(self):
        """Draw all weights anew."""
        for linear in (self.head, *(linear for cluster in self.tail for linear in cluster)):
            linear.reset_parameters()

    def forward(self, input_, target_):
        self._check(input_, target_)
        single = target_.dim() == 0
        input = input_.unsqueeze(0) if single else input_
        target = target_.unsqueeze(0) if single else target_
        head = F.log_softmax(self.head(input), dim=1)
        places = ((target >= 0) & (target < self.shortlist_size)).nonzero().squeeze(1)
        rows = [places]
        values = [head[places].gather(1, target[places].unsqueeze(1)).squeeze(1)]
        for i, cluster in enumerate(self.tail):
            places = ((target >= self.cutoffs[i]) & (target < self.cutoffs[i + 1])).nonzero().squeeze(1)
            if places.numel() > 0:  # else the weights of the cluster get no gradient
                tail = F.log_softmax(cluster(input[places]), dim=1)
                within = tail.gather(1, (target[places] - self.cutoffs[i]).unsqueeze(1)).squeeze(1)
                rows.append(places)
                values.append(within + head[places, self.shortlist_size + i])
        found = tg.cat(rows)
        if found.numel() != target.numel():
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: Target values should be in [0, {self.n_classes - 1}], but values in "
                f"range [{target.min().item()}, {target.max().item()}] were found"
            )
        output = head.new_zeros(target.shape).index_copy(0, found, tg.cat(values))
        loss = (-output).mean()
        return _ASMoutput(output.squeeze(0) if single else output, loss)

    def _check(self, input, target):
        if target.dim() > 1:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: 0D or 1D target tensor expected, multi-target not supported, "
                f"got {target.dim()}D"
            )
        if target.dim() == 1 and input.shape[0] != target.shape[0]:
            raise RuntimeError(
                "AdaptiveLogSoftmaxWithLoss: Input and target should have the same size in the batch dimension, "
                f"got {input.shape[0]} and {target.shape[0]}"
            )
        if input.dim() != target.dim() + 1:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: {target.dim()}D target tensor expects {target.dim() + 1}D input tensors, "
                f"but found inputs with size {list(input.shape)}"
            )

    def _all(self, input, head):
        """Return the log-probabilities of all classes."""
        head = F.log_softmax(head, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return tg.cat(parts, 1)

    def log_prob(self, input):
        """Return the log-probability of every class for each row of ``input``: (N, n_classes)."""
        return self._all(input, self.head(input))

    def predict(self, input):
        """Return the most probable class for each row; the same as ``log_prob(input).argmax(1)``, but faster."""
        head = self.head(input)
        best = head.argmax(dim=1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:  # no tail can be more probable than its entry in the head
            return best
        return best.index_copy(0, rows, self._all(input[rows], head[rows]).argmax(dim=1))
