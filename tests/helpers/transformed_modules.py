"""Modules for tests of transforms, and their gradients without any: by calling them, and `backward`.

Each is built from a library, so that PyTorch's can be built from the same lines.
"""

import copy
import functools
import io

import tinygrad_ext as tg
from tinygrad_ext.func import functional_call

SIZE = 3


def images(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1),
        nn.BatchNorm2d(4, track_running_stats=False),
        nn.GELU(),
        nn.Conv2d(4, 6, (3, 2), padding=1, dilation=(1, 2), groups=2, bias=False),
        nn.MaxPool2d(2, 1),
        nn.GroupNorm(3, 6),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d((1, 2)),
        nn.Flatten(),
        nn.Linear(12, 2),
    )


def single_images(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding="same"),
        nn.Tanh(),
        nn.AvgPool2d(2, padding=1, count_include_pad=False),
        nn.Conv2d(4, 4, 2, groups=4),
        nn.AdaptiveMaxPool2d(2),
        nn.Flatten(0),
        nn.Linear(16, 2),
    )


def series(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv1d(2, 4, 3, stride=2, padding=2, dilation=2),
        nn.GLU(1),
        nn.AvgPool1d(2, 1),
        nn.Conv1d(2, 4, 3, padding="same"),
        nn.PReLU(4),
        nn.MaxPool1d(2, 1),
        nn.AdaptiveAvgPool1d(2),
        nn.Flatten(),
        nn.Linear(8, 2),
    )


def norms(lib):
    nn = lib.nn

    class Norms(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows, self.groups = nn.LayerNorm((3, 4)), nn.GroupNorm(3, 6)
            self.batch, self.scale = nn.BatchNorm1d(6), nn.Parameter(lib.ones(4))
            self.mix = nn.Linear(4, 4)

        def forward(self, x):
            x = self.mix(self.groups(x)) + lib.nn.functional.instance_norm(x)
            x = self.batch(x).unflatten(1, (2, 3))
            x = lib.nn.functional.rms_norm(self.rows(x).tanh(), (4,), self.scale, 1e-5)
            return lib.nn.functional.normalize(x.flatten(1), dim=1)

    model = Norms()
    model(lib.rand(5, 6, 4))  # which moves the statistics
    return model.eval()


def transformer(lib):
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        """Causal attention of two heads and a small network, on a table that is the head too."""

        def __init__(self):
            super().__init__()
            self.table, self.places = nn.Embedding(5, 4), nn.Parameter(lib.randn(3, 4))
            self.before, self.after = nn.LayerNorm(4), nn.LayerNorm(4)
            self.mix, self.out = nn.Linear(4, 12), nn.Linear(4, 4)
            self.wide = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Dropout(0.0), nn.Linear(6, 4))
            self.head = nn.Linear(4, 5, bias=False)
            self.head.weight = self.table.weight
            self.register_buffer("later", lib.ones(3, 3).triu(1).bool())

        def forward(self, numbers):
            x = self.table(numbers) + self.places
            q, k, v = (p.unflatten(-1, (2, 2)).transpose(-2, -3) for p in self.mix(self.before(x)).chunk(3, -1))
            scores = (q @ k.mT / 2**0.5).masked_fill(self.later, -float("inf"))
            x = x + self.out((scores.softmax(-1) @ v).transpose(-2, -3).flatten(-2))
            return F.log_softmax(self.head(x + self.wide(self.after(x))), -1)

    return Block()


def recurrent(lib):
    nn = lib.nn

    class Gates(nn.Module):
        """An LSTM above a GRU, step by step along dimension 0."""

        def __init__(self):
            super().__init__()
            self.gru_in, self.gru_kept = nn.Linear(2, 9), nn.Linear(3, 9)
            self.lstm_in, self.lstm_kept = nn.Linear(3, 8), nn.Linear(2, 8, bias=False)

        def forward(self, x):
            low, high, cell = x.new_zeros(3), x.new_zeros(2), x.new_zeros(2)
            seen = []
            for row in x:
                (r, z, n), (hr, hz, hn) = self.gru_in(row).chunk(3), self.gru_kept(low).chunk(3)
                z = (z + hz).sigmoid()
                low = z * low + (1 - z) * (n + (r + hr).sigmoid() * hn).tanh()
                i, f, g, o = (self.lstm_in(low) + self.lstm_kept(high)).split(2)
                cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
                high = o.sigmoid() * cell.tanh()
                seen.append(high)
            return lib.stack(seen)

    return Gates()


def embeddings(lib):
    nn = lib.nn

    class Bags(nn.Module):
        """The mean of a bag's rows without its padding, beside the largest of other rows and counts of them."""

        def __init__(self):
            super().__init__()
            self.rows = nn.Embedding(6, 3, padding_idx=-1)
            self.other = nn.Embedding(6, 3)
            self.head = nn.Linear(12, 2)

        def forward(self, bags):
            keep = (bags != 5).unsqueeze(-1)
            mean = (self.rows(bags) * keep).sum(1) / keep.sum(1).clamp(min=1)
            kinds = (bags.unsqueeze(-1) == lib.arange(6)).sum(1).to(mean.dtype)
            return self.head(lib.cat([mean, self.other(bags).amax(1), kinds], 1))

    return Bags()


# Each: what builds it, the shape of a sample, and how many rows there are where samples are indices.
MODELS = {
    "images": (images, (2, 2, 6, 5), None),
    "single images": (single_images, (2, 4, 5), None),
    "series": (series, (2, 2, 8), None),
    "norms": (norms, (2, 6, 4), None),
    "transformer": (transformer, (3,), 5),
    "recurrent": (recurrent, (3, 2), None),
    "embeddings": (embeddings, (2, 4), 6),
}


@functools.cache
def pattern(name):
    tg.manual_seed(0)
    return MODELS[name][0](tg)


def built(name, dtype=tg.float64, seed=0):
    """A module whose scales are not one and whose biases are not zero, which would hide much."""
    model = copy.deepcopy(pattern(name)).to(dtype)
    generator = tg.Generator().manual_seed(seed)
    with tg.no_grad():
        for p in model.parameters():
            p.add_(tg.randn(p.shape, dtype=dtype, generator=generator) * 0.3)
    return model


def samples(name, size=SIZE, dtype=tg.float64):
    _, shape, rows = MODELS[name]
    generator = tg.Generator().manual_seed(5)
    if rows is None:
        return tg.randn(size, *shape, dtype=dtype, generator=generator)
    return tg.randint(rows, (size, *shape), generator=generator)


def weights_of(model):
    return {n: p.detach() for n, p in model.named_parameters()}


def bent(y):
    """A number from a result, which has second derivatives in all of it."""
    return (y * (tg.arange(y.numel(), dtype=y.dtype).reshape(y.shape) - 1) + y**3).sum()


def loss_of(model):
    return lambda weights, x: bent(functional_call(model, weights, (x,)))


def slopes_by_backward(model, x):
    """Gradients by the parameters, and by the input where it has one."""
    model.zero_grad()
    x = x.clone().requires_grad_(x.is_floating_point())
    bent(model(x)).backward()
    return {n: p.grad.clone() for n, p in model.named_parameters()}, x.grad


def close(got, want, **words):
    assert got.dtype == want.dtype and got.shape == want.shape
    assert tg.allclose(got, want, **words)


def all_close(got, want, **words):
    assert list(got) == list(want)
    for n in got:
        assert got[n].dtype == want[n].dtype and got[n].shape == want[n].shape, n
        assert tg.allclose(got[n], want[n], **words), n


def stacked(dicts):
    return {n: tg.stack([d[n] for d in dicts]) for n in dicts[0]}


def loaded(traced):
    """A traced function from its file; the traced one itself is run op by op inside transforms, in Python."""
    file = io.BytesIO()
    tg.jit.save(traced, file)
    file.seek(0)
    return tg.jit.load(file)


def directions(weights):
    generator = tg.Generator().manual_seed(7)
    return {n: tg.randn(w.shape, dtype=w.dtype, generator=generator) for n, w in weights.items()}


def along(slopes, directions):
    return sum((slopes[n] * directions[n]).sum() for n in slopes)
