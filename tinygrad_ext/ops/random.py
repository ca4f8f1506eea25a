"""Random numbers: factories, in-place fills, draws by given probabilities.

Each draws from `generator`, or from the default generator that manual_seed starts, in PyTorch's order.
"""

import tinygrad_ext as tg
from tinygrad_ext.ops.record import op
from tinygrad_ext.ops.samples import Sample

_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool requires_grad=False"
)
FACTORY = f"Generator? generator=None, {_OPTIONS}"
_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None, Generator? generator=None"


def _no_grad(grad):
    return grad.new_zeros(grad.shape)


def _sizes(make):
    for size in ((2, 3), (), (0, 4)):
        yield Sample(size)


def _likes(make):
    yield Sample(make(2, 3))
    yield Sample(make())
    yield Sample(make(0, 2))


def _likes_and(*more):
    return lambda make: [Sample(*s.args, *more) for s in _likes(make)]


def _plain_and(*more):
    """Without gradients, where PyTorch has no derivative and ours is zero."""
    return lambda make: [Sample(s.args[0].detach(), *more) for s in _likes(make)]


def _probabilities(make):
    yield Sample(make(2, 3, low=0, high=1))
    yield Sample(make(0, low=0, high=1))
    yield Sample(make(low=0, high=1))


# ---- factories -----------------------------------------------------------------------------------------------------

op(
    f"aten::rand(int[] size, *, {FACTORY}) -> Tensor",
    kernel="rand",
    variants="function out",
    samples=_sizes,
    tags="random",
    errors=[
        (lambda: tg.rand(2, -1), RuntimeError, "negative dimension"),
        (lambda: tg.rand(2, dtype=tg.int64), NotImplementedError, "not implemented for 'Long'"),
    ],
    doc="Uniform numbers in [0, 1).",
)

op(
    f"aten::randn(int[] size, *, {FACTORY}) -> Tensor",
    kernel="randn",
    variants="function out",
    samples=_sizes,
    tags="random",
    doc="Normal numbers of mean 0 and variance 1; complex ones of variance 1 in both parts together.",
)

op(
    f"aten::randint(int high, int[] size, *, {FACTORY}) -> Tensor",
    kernel="randint",
    variants="function out",
    tags="random",
    samples=lambda make: [Sample(7, (2, 3)), Sample(1, ()), Sample(3, (0,))],
    errors=[(lambda: tg.randint(0, (2,)), RuntimeError, "random_ expects 'from' to be less than 'to'")],
    doc="Integers from 0 up to but without high.",
)

op(
    f"aten::randint.low(int low, int high, int[] size, *, {FACTORY}) -> Tensor",
    kernel="randint_low",
    variants="function out",
    tags="random",
    samples=lambda make: [Sample(-3, 7, (2, 3)), Sample(0, 1, ())],
    errors=[(lambda: tg.randint(3, 3, (2,)), RuntimeError, "random_ expects 'from' to be less than 'to'")],
    doc="Integers from low up to but without high.",
)

op(
    f"aten::randperm(int n, *, {FACTORY}) -> Tensor",
    kernel="randperm",
    variants="function out",
    tags="random",
    samples=lambda make: [Sample(5), Sample(0), Sample(1)],
    errors=[(lambda: tg.randperm(-1), RuntimeError, "n must be non-negative")],
    doc="0, 1, ..., n - 1 in random order.",
)

op(
    f"aten::rand_like(Tensor self, *, {_LIKE}) -> Tensor",
    kernel="rand_like",
    variants="function",
    samples=_likes,
    types="float half",
    tags="random",
    doc="Uniform numbers in [0, 1) in the shape, dtype and order in memory of self.",
)

op(
    f"aten::randn_like(Tensor self, *, {_LIKE}) -> Tensor",
    kernel="randn_like",
    variants="function",
    samples=_likes,
    types="float half",
    tags="random",
    doc="Normal numbers of mean 0 and variance 1 in the shape, dtype and order in memory of self.",
)

op(
    f"aten::randint_like(Tensor self, int high, *, {_LIKE}) -> Tensor",
    kernel="randint_like",
    variants="function",
    samples=_likes_and(5),
    types="int float half",
    tags="random",
    doc="Integers from 0 up to but without high in the shape and dtype of self.",
)

op(
    f"aten::randint_like.low_dtype(Tensor self, int low, int high, *, {_LIKE}) -> Tensor",
    kernel="randint_like_low",
    variants="function",
    samples=_likes_and(1, 5),
    types="int float half",
    tags="random",
    doc="Integers from low up to but without high in the shape and dtype of self.",
)

# ---- in place ------------------------------------------------------------------------------------------------------

op(
    "aten::uniform(Tensor self, float from=0, float to=1, *, Generator? generator=None) -> Tensor",
    kernel="uniform",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes,
    types="float half",
    tags="random",
    errors=[(lambda: tg.zeros(2).uniform_(2, 1), RuntimeError, "uniform_")],
    doc="uniform_: numbers in [from, to).",
)

op(
    "aten::normal.fill(Tensor self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor",
    kernel="normal",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes,
    types="float half",
    tags="random",
    errors=[(lambda: tg.zeros(2).normal_(0, -1), RuntimeError, "normal")],
    doc="normal_: numbers of the given mean and standard deviation.",
)

op(
    "aten::random(Tensor self, *, Generator? generator=None) -> Tensor",
    kernel="random",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes,
    types="bool int float half",
    tags="random",
    doc="random_: integers from 0 to the greatest that the dtype holds without gaps.",
)

op(
    "aten::random.to(Tensor self, int to, *, Generator? generator=None) -> Tensor",
    kernel="random_to",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes_and(9),
    types="int natural float half",
    tags="random",
    doc="random_: integers from 0 up to but without `to`.",
)

op(
    "aten::random.from(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
    kernel="random_from",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes_and(2, 9),
    types="int natural float half",
    tags="random",
    errors=[(lambda: tg.zeros(2).random_(3, 2), RuntimeError, "random_ expects 'from' to be less than 'to'")],
    doc="random_: integers from `from` up to but without `to`, or to the greatest of the dtype.",
)

op(
    "aten::exponential(Tensor self, float lambd=1, *, Generator? generator=None) -> Tensor",
    kernel="exponential",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes,
    types="float half",
    tags="random",
    errors=[(lambda: tg.zeros(2).exponential_(0), RuntimeError, "exponential_")],
    doc="exponential_: numbers with density lambd * exp(-lambd * x).",
)

op(
    "aten::geometric(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    kernel="geometric",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes_and(0.3),
    types="int float half",
    tags="random",
    errors=[(lambda: tg.zeros(2).geometric_(1.0), RuntimeError, "geometric_")],
    doc="geometric_: number of trials, of success probability p, up to the first success.",
)

op(
    "aten::cauchy(Tensor self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor",
    kernel="cauchy",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes,
    types="float half",
    tags="random",
    errors=[(lambda: tg.zeros(2).cauchy_(0, 0), RuntimeError, "cauchy_")],
    doc="cauchy_: numbers with density 1 / (pi * sigma * (1 + ((x - median) / sigma) ** 2)).",
)

op(
    "aten::log_normal(Tensor self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor",
    kernel="log_normal",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes,
    types="float half",
    tags="random",
    errors=[(lambda: tg.zeros(2).log_normal_(0, 0), RuntimeError, "log_normal_")],
    doc="log_normal_: numbers whose logarithm is normal with the given mean and standard deviation.",
)

# ---- by given probabilities ----------------------------------------------------------------------------------------

op(
    "aten::bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    kernel="bernoulli",
    variants="function method out",
    grad={"self": _no_grad},
    samples=_probabilities,
    types="float half",
    tags="random casts",
    errors=[
        (lambda: tg.bernoulli(tg.tensor([2.0])), RuntimeError, "Expected p_in >= 0"),
        (lambda: tg.bernoulli(tg.tensor([1])), NotImplementedError, "not implemented for 'Long'"),
    ],
    doc="0 or 1 by the probabilities of a 1 that self holds.",
)

op(
    "aten::bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    kernel="bernoulli_p",
    variants="function method",
    grad={"self": _no_grad},
    samples=_plain_and(0.3),
    types="int float half",
    tags="random",
    doc="0 or 1 in the shape and dtype of self, each 1 with probability p.",
)

op(
    "aten::bernoulli.float(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor",
    kernel="bernoulli_p",
    variants="inplace",
    grad={"self": _no_grad},
    samples=_likes_and(0.3),
    types="int float half",
    tags="random",
    errors=[(lambda: tg.zeros(2).bernoulli_(1.5), RuntimeError, "bernoulli_")],
    doc="bernoulli_: 0 or 1, each 1 with probability p.",
)

op(
    "aten::bernoulli.Tensor(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
    kernel="bernoulli_tensor",
    variants="inplace",
    grad={"self": _no_grad, "p": lambda grad, p_shape: grad.new_zeros(p_shape)},
    samples=lambda make: [Sample(make(2, 3), make(3, low=0, high=1))],
    types="float",
    tags="random",
    doc="bernoulli_: 0 or 1 by the probabilities of a 1 that p holds, which broadcasts to self.",
)

op(
    "aten::multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    kernel="multinomial",
    variants="function method out",
    types="float",
    tags="random",
    samples=lambda make: [Sample(make(5, low=1, high=3), 3), Sample(make(2, 4, low=1, high=3), 6, True)],
    errors=[
        (lambda: tg.multinomial(tg.ones(3), 4), RuntimeError, "cannot sample n_sample > prob_dist"),
        (lambda: tg.multinomial(tg.ones(1, 1, 1), 1), RuntimeError, "prob_dist must be 1 or 2 dim"),
    ],
    doc="Indices drawn by the weights in self: one row of num_samples for a vector, a row for each row of a matrix.",
)
