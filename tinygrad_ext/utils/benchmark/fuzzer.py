"""Tensors of random sizes and layouts, as inputs of measurements: the same ones for the same seed.

All that is random about sizes and layouts comes from one NumPy stream, in the order in which PyTorch asks it: seeds
that were noted down there give the same parameters here. Elements come from `manual_seed` with a number of that stream.
"""

import itertools
import math

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.later import later

__all__ = ["FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_DISTRIBUTIONS = ("loguniform", "uniform")
_TRIES = 1000


@boundary
class ParameterAlias:
    """In a distribution: the value of another parameter."""

    def __init__(self, alias_to):
        self.alias_to = alias_to

    def __repr__(self):
        return f"ParameterAlias[alias_to: {self.alias_to}]"


@boundary
class FuzzedParameter:
    """A number that is drawn anew for each set of tensors.

    Args:
        name: by which sizes mean it.
        minval, maxval: its ends, both included of integers.
        distribution: "uniform", "loguniform", or {value: probability}, without ends then.
        strict: keep the value while others are drawn again because they did not fit.

    Raises AssertionError for another distribution, or one that is none.
    """

    def __init__(self, name, minval=None, maxval=None, distribution=None, strict=False):
        self.name, self.strict = name, strict
        self._ends, self._distribution = (minval, maxval), distribution
        if not isinstance(distribution, dict):
            if distribution not in _DISTRIBUTIONS:
                raise AssertionError(f"Unknown distribution: {distribution}; it is one of {_DISTRIBUTIONS} or a dict")
            return
        if any(share < 0 for share in distribution.values()) or abs(sum(distribution.values()) - 1) > 1e-5:
            raise AssertionError(f"FuzzedParameter {name}: probabilities are 0 or more, and one together")
        if self._ends != (None, None):
            raise AssertionError(f"FuzzedParameter {name}: minval and maxval are for distributions with a name")

    def sample(self, state):
        """A value, from a NumPy RandomState."""
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[state.choice(len(values), p=tuple(self._distribution.values()))]
        low, high = self._ends
        if self._distribution == "loguniform":
            return min(max(int(2 ** state.uniform(low=math.log2(low), high=math.log2(high))), low), high)
        if isinstance(low, int) and isinstance(high, int):
            return int(state.randint(low=low, high=high + 1))
        return state.uniform(low=low, high=high)


@boundary
class FuzzedTensor:
    """A tensor whose sizes are parameters.

    Args:
        name: by which the result has it.
        size: integers, and names of parameters.
        steps: the same, by which memory is stepped over: the tensor is every so manieth element of a larger one.
        probability_contiguous: with which the dimensions are in order in memory; else they are shuffled.
        min_elements, max_elements, max_allocation_bytes: what is drawn again lies outside of these.
        dim_parameter: the parameter that says how many of the sizes count.
        roll_parameter: taken, and changes nothing, as in PyTorch.
        dtype: of the elements, which are in [0, 1), or integers from 1 to 126.
        cuda: put it there.
        tensor_constructor: called with size=, dtype= and all parameters instead.
    """

    def __init__(
        self, name, size, steps=None, probability_contiguous=0.5, min_elements=None, max_elements=None,
        max_allocation_bytes=None, dim_parameter=None, roll_parameter=None, dtype=tg.float32, cuda=False,
        tensor_constructor=None,
    ):  # fmt: skip
        self.name, self._size, self._steps = name, size, steps if steps is not None else (1,) * len(size)
        self._probability_contiguous, self._dim_parameter = probability_contiguous, dim_parameter
        self._limits = min_elements, max_elements, max_allocation_bytes
        self._dtype, self._cuda, self._constructor = dtype, cuda, tensor_constructor

    @staticmethod
    def default_tensor_constructor(size, dtype, **kwargs):
        """Random elements."""
        if dtype.is_floating_point or dtype.is_complex:
            return tg.rand(tuple(size), dtype=dtype)
        return tg.randint(1, 127, tuple(size), dtype=dtype)

    def _make_tensor(self, params, state):
        """(tensor, what it is like)."""
        size, steps, whole = self._get_size_and_steps(params)
        made = (self._constructor or self.default_tensor_constructor)(size=whole, dtype=self._dtype, **params)
        made = made.cuda() if self._cuda else made
        order = list(range(len(size)))
        if state.rand() > self._probability_contiguous:
            while len(size) > 1 and order == sorted(order):
                order = [int(d) for d in state.permutation(made.dim())]
            back = sorted(range(len(order)), key=order.__getitem__)
            made = made.permute(order).contiguous().permute(back)
        made = made[tuple(slice(0, n * step, step) for n, step in zip(size, steps))]
        return made, {
            "numel": made.numel(),
            "order": order,
            "steps": steps,
            "is_contiguous": made.is_contiguous(),
            "dtype": str(self._dtype),
        }

    def _get_size_and_steps(self, params):
        """The sizes, the steps, and the sizes of what is allocated."""
        dims = len(self._size) if self._dim_parameter is None else params[self._dim_parameter]

        def known(values):
            found = [params.get(value, value) for value in values][:dims]
            return (*found, *(1,) * (dims - len(found)))

        size, steps = known(self._size), known(self._steps)
        return size, steps, tuple(n * step for n, step in zip(size, steps))

    def satisfies_constraints(self, params):
        """Whether its size lies within the limits."""
        size, _, whole = self._get_size_and_steps(params)
        least, most, most_bytes = self._limits
        count = math.prod(map(int, size))
        nbytes = math.prod(map(int, whole)) * self._dtype.itemsize
        return (
            (least is None or count >= least)
            and (most is None or count <= most)
            and (most_bytes is None or nbytes <= most_bytes)
        )


@boundary
class FuzzedSparseTensor(FuzzedTensor):
    """A tensor of the layout sparse_coo whose sizes are parameters, with parameters "density" and "coalesced" besides.

    Args:
        sparse_dim: whether the parameter "sparse_dim" says how many dimensions are sparse; all unless given.
        nnz, density, coalesced: names of parameters, for the reader.
    """

    def __init__(
        self, name, size, min_elements=None, max_elements=None, dim_parameter=None, sparse_dim=None, nnz=None,
        density=None, coalesced=None, dtype=tg.float32, cuda=False,
    ):  # fmt: skip
        super().__init__(
            name, size, min_elements=min_elements, max_elements=max_elements, dim_parameter=dim_parameter,
            dtype=dtype, cuda=cuda,
        )  # fmt: skip
        self._sparse_dim = sparse_dim

    @staticmethod
    def sparse_tensor_constructor(size, dtype, sparse_dim, nnz, is_coalesced):
        """nnz elements at random places; where they are not to be coalesced, twice as many at the same ones."""
        size = tuple(size) if hasattr(size, "__iter__") else (size,) * sparse_dim
        if nnz and all(n <= 0 for n in size[:sparse_dim]):
            raise AssertionError(f"FuzzedSparseTensor: {nnz} elements do not fit into {size}")
        values = FuzzedTensor.default_tensor_constructor((nnz, *size[sparse_dim:]), dtype)
        places = (tg.rand(sparse_dim, nnz) * tg.tensor(size[:sparse_dim]).unsqueeze(1)).long()
        sparse_coo_tensor = later("sparse tensors").sparse_coo_tensor
        if is_coalesced:
            return sparse_coo_tensor(places, values, size).coalesce()
        values, places = tg.cat([values, tg.randn(values.shape).to(dtype)]), tg.cat([places, places], 1)
        return sparse_coo_tensor(places, values, size)

    def _make_tensor(self, params, state):
        size, _, _ = self._get_size_and_steps(params)
        nnz = math.ceil(sum(size) * params["density"])
        if nnz > sum(size):
            raise AssertionError(f"FuzzedSparseTensor {self.name}: density {params['density']} is more than one")
        sparse_dim = min(params["sparse_dim"], len(size)) if self._sparse_dim else len(size)
        made = self.sparse_tensor_constructor(size, self._dtype, sparse_dim, nnz, params["coalesced"])
        made = made.cuda() if self._cuda else made
        return made, {
            "numel": made.numel(),
            "shape": made.size(),
            "is_coalesced": made.is_coalesced(),
            "density": params["density"],
            "sparsity": 1.0 - params["density"],
            "sparse_dim": made.sparse_dim(),
            "dense_dim": made.dense_dim(),
            "is_hybrid": made.dense_dim() > 0,
            "dtype": str(self._dtype),
        }


@boundary
class Fuzzer:
    """Draws parameters, and makes tensors by them.

    Args:
        parameters, tensors: `FuzzedParameter` and `FuzzedTensor`, or lists of them among these.
        constraints: functions of a dict of parameters; where one says False all are drawn again.
        seed: of the stream; drawn unless given.

    Raises ValueError for a name that a parameter and a tensor have both.

        >>> from tinygrad_ext.utils import benchmark
        >>> fuzzer = benchmark.Fuzzer(
        ...     [benchmark.FuzzedParameter("n", 4, 16, "loguniform")], [benchmark.FuzzedTensor("x", ("n", 2))], seed=0
        ... )
        >>> for tensors, properties, params in fuzzer.take(2):
        ...     assert tensors["x"].shape == (params["n"], 2)
    """

    def __init__(self, parameters, tensors, constraints=None, seed=None):
        self._seed = seed
        self._parameters = _flat(parameters, FuzzedParameter)
        self._tensors = _flat(tensors, FuzzedTensor)
        self._constraints = constraints or ()
        both = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejected = self._drawn = 0

    def take(self, n):
        """Yield n times (the tensors by name, what each is like, the parameters)."""
        import numpy as np  # lazy: for programs that measure

        if self._seed is None:
            self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64))
        state = np.random.RandomState(self._seed)
        tg.manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._generate(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {k: t for k, (t, _) in made.items()}, {k: like for k, (_, like) in made.items()}, params

    @property
    def rejection_rate(self):
        """The share of what was drawn that did not fit."""
        return self._rejected / self._drawn if self._drawn else 0.0

    def _generate(self, state):
        kept = {}
        for _ in range(_TRIES):
            params = {}
            for p in self._parameters:
                params[p.name] = kept[p.name] if p.name in kept else p.sample(state)
                if p.strict:
                    kept[p.name] = params[p.name]
            params = _resolved(params)
            self._drawn += 1
            if all(f(params) for f in self._constraints) and all(
                t.satisfies_constraints(params) for t in self._tensors
            ):
                return params
            self._rejected += 1
        raise ValueError(f"Failed to generate a set of valid parameters: {_TRIES} in a row did not fit")


def _flat(values, kind):
    return tuple(itertools.chain.from_iterable([x] if isinstance(x, kind) else x for x in values))


def _resolved(params):
    """Parameters without aliases."""
    found = {}
    for name, value in params.items():
        seen = [name]
        while isinstance(value, ParameterAlias):
            if value.alias_to in seen:
                raise ValueError(f"ParameterAlias cycle detected: {' -> '.join([*seen, value.alias_to])}")
            seen.append(value.alias_to)
            value = params[value.alias_to]
        found[name] = value
    return found
