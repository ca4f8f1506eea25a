"""The order in which a dataset is visited. The random ones draw as PyTorch's do."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


def draw_seed(generator=None):
    """Draw a seed from ``generator``, or from the default one."""
    return int(tg.empty((), dtype=tg.int64).random_(generator=generator).item())


def _positive(name, value):
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


@boundary
class Sampler:
    """Base of samplers: ``__iter__`` gives indices (or lists of them), ``__len__`` how many."""

    def __init__(self, data_source=None):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__(self)")


@boundary
class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


@boundary
class RandomSampler(Sampler):
    """A new permutation each time.

    Args:
        data_source: a sized dataset.
        replacement: draw each index independently.
        num_samples: how many; more than the dataset has means several permutations.
        generator: source; by default a new one, whose seed comes from the default generator.
    """

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self):
        """How many indices one pass gives."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        size = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = tg.Generator()
            generator.manual_seed(draw_seed())
        if self.replacement:
            yield from self._independent(size, generator)
            return
        for _ in range(self.num_samples // size):
            yield from tg.randperm(size, generator=generator).tolist()
        # Drawn even if nothing is left over, so that a shared generator stays in step with PyTorch's.
        yield from tg.randperm(size, generator=generator).tolist()[: self.num_samples % size]

    def _independent(self, size, generator):
        left = self.num_samples
        while left > 0:
            drawn = tg.randint(high=size, size=(min(left, 32),), dtype=tg.int64, generator=generator)
            yield from drawn.tolist()
            left -= 32

    def __len__(self):
        return self.num_samples


@boundary
class SubsetRandomSampler(Sampler):
    """The given indices in a new order each time."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for place in tg.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self):
        return len(self.indices)


@boundary
class WeightedRandomSampler(Sampler):
    """``num_samples`` indices, each with a probability proportional to its weight."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        _positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = tg.as_tensor(weights, dtype=tg.float64)
        if self.weights.dim() != 1:
            shape = tuple(self.weights.shape)
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {shape}")
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = tg.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self):
        return self.num_samples


@boundary
class BatchSampler(Sampler):
    """Lists of ``batch_size`` indices of another sampler; the last is shorter, or dropped."""

    def __init__(self, sampler, batch_size, drop_last):
        _positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
