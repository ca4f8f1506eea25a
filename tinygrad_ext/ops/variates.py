"""Random numbers of given concentrations, rates and counts, and how they change with them.

The streams are PyTorch's, and so are the names of the private ones, which distributions are built on.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

_FITTED = "PyTorch's slopes come from fitted fractions and are good to three digits; tests/distributions compares so"


def _positive(make):
    yield Sample(make(2, 3, low=0.5, high=12))
    yield Sample(make(low=0.5, high=5))
    yield Sample(make(0, low=0.5, high=5))


def _counted(make):
    # no gradients: a count steps where its parameters move, while its derivative is zero, as PyTorch's
    yield Sample(make(2, 3, low=5, high=40).detach(), make(2, 3, low=0, high=1).detach())
    yield Sample(make(low=5, high=40).detach(), make(low=0, high=1).detach())


op(
    "aten::poisson(Tensor self, Generator? generator=None) -> Tensor",
    kernel="poisson",
    variants="function",
    grad={"self": lambda grad: grad.new_zeros(grad.shape)},
    samples=_positive,
    types="float half",
    tags="random",
    errors=[
        (lambda: tg.poisson(tg.tensor([-1.0])), RuntimeError, "invalid Poisson rate, expected rate to be non-negative"),
        (lambda: tg.poisson(tg.tensor([1])), NotImplementedError, "not implemented for 'Long'"),
    ],
    doc="Whole numbers of the Poisson distributions whose rates self holds, in its dtype.",
)

op(
    "aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    kernel="binomial",
    variants="function",
    grad={
        "count": lambda grad: grad.new_zeros(grad.shape),
        "prob": lambda grad: grad.new_zeros(grad.shape),
    },
    samples=_counted,
    types="float half",
    tags="random",
    errors=[(lambda: tg.binomial(tg.ones(2), tg.ones(3)), RuntimeError, "must have one shape and dtype")],
    doc="How many of count trials succeed, each with probability prob. Both are float tensors of one shape.",
)

op(
    "aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    kernel="standard_gamma",
    variants="function",
    grad={"self": lambda grad, self, result: grad * tg._standard_gamma_grad(self, result)},
    jvp="symmetric",
    samples=_positive,
    types="float",
    tags="random",
    gaps={
        "torch": _FITTED,
        "gradcheck": "a random op is drawn anew at the shifted argument",
        "gradgradcheck": "the slope of a sample has no derivative, as in PyTorch",
    },
    errors=[(lambda: tg._standard_gamma(tg.tensor([1])), NotImplementedError, "not implemented for 'Long'")],
    doc="Numbers of the gamma distributions whose concentrations self holds, with scale 1.",
)

op(
    "aten::_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    kernel="standard_gamma_grad",
    variants="function",
    batch=lambda b, self, output: tg._standard_gamma_grad(b.whole(self), b.whole(output)),
    samples=lambda make: [Sample(*(make(*s, low=0.5, high=12).detach() for _ in "ax")) for s in ((2, 3), (), (0,))],
    types="float",
    gaps={"torch": _FITTED},
    errors=[(lambda: tg._standard_gamma_grad(tg.ones(2), tg.ones(3)), RuntimeError, "one shape and dtype")],
    doc="How a gamma variable that was drawn changes with its concentration, at the same place in the distribution.",
)


def _from_dirichlet(grad, self, result):
    slope = tg._dirichlet_grad(result, self, self.sum(-1, True).expand(self.shape))
    return slope * (grad - (result * grad).sum(-1, True))


op(
    "aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    kernel="sample_dirichlet",
    variants="function",
    grad={"self": _from_dirichlet},
    jvp="transposed",
    batch="leading",
    samples=lambda make: [Sample(make(2, 3, low=0.5, high=5)), Sample(make(4, low=0.5, high=5)), Sample(make(0, 3))],
    types="float",
    tags="random",
    gaps={
        "torch": _FITTED,
        "gradcheck": "a random op is drawn anew at the shifted argument",
        "gradgradcheck": "the slope of a sample has no derivative, as in PyTorch",
    },
    errors=[(lambda: tg._sample_dirichlet(tg.tensor(1.0)), RuntimeError, "expected vectors of concentrations")],
    doc="Vectors of the Dirichlet distributions whose concentrations the last dimension of self holds.",
)


def _shares(make):
    share, alpha, total = make(2, 3, low=0.1, high=0.9), make(2, 3, low=0.5, high=2), make(2, 3, low=3, high=5)
    yield Sample(share.detach(), alpha.detach(), total.detach())


op(
    "aten::_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    kernel="dirichlet_grad",
    variants="function",
    batch=lambda b, *shares: tg._dirichlet_grad(*map(b.whole, shares)),
    samples=_shares,
    types="float",
    gaps={"torch": _FITTED},
    errors=[
        (lambda: tg._dirichlet_grad(tg.ones(2), tg.ones(2), tg.ones(3)), RuntimeError, "one shape and dtype"),
    ],
    doc="How a part of a Dirichlet vector changes with its concentration, over what the others have; total: their sum.",
)
