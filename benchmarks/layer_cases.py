"""Rows of whole layers, forward and backward, of optimizers and distributions: the table of cases goes on here."""

import itertools

from .cases import case

# kind, batch, budget: a layer of 64 units over 20 steps of 64 features
for _kind, _batch in itertools.product(("LSTM", "GRU", "RNN"), (32, 1)):

    @case(f"{_kind} 64-64, 20 steps, batch {_batch}, fwd+bwd", "layers", 0.3 if _batch > 1 else 0.15)
    def _recurrent(lib, draw, kind=_kind, batch=_batch):
        return _layer_step(lib, getattr(lib.module.nn, kind)(64, 64), draw(lib, 20, batch, 64))


def _layer_step(lib, layer, *args, **settings):
    """Forward and backward of a layer; the first of several results counts."""
    parameters = list(layer.parameters())

    def step():
        for p in parameters:
            p.grad = None
        out = layer(*args, **settings)
        (out[0] if isinstance(out, tuple) else out).sum().backward()

    return step


for _width, _length in ((64, 32), (128, 64)):

    @case(f"MultiheadAttention {_width}, {_length} steps, batch 8, fwd+bwd", "layers", 0.5)
    def _attention(lib, draw, width=_width, length=_length):
        layer, x = lib.module.nn.MultiheadAttention(width, width // 16, batch_first=True), draw(lib, 8, length, width)
        return _layer_step(lib, layer, x, x, x, need_weights=False)

    @case(f"TransformerEncoderLayer {_width}, {_length} steps, batch 8, fwd+bwd", "layers", 0.5)
    def _encoder(lib, draw, width=_width, length=_length):
        make = lib.module.nn.TransformerEncoderLayer
        layer = make(width, width // 16, 4 * width, batch_first=True)
        return _layer_step(lib, layer, draw(lib, 8, length, width))


# ---- optimizers ----------------------------------------------------------------------------------------------------

for _name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam"):

    @case(f"{_name} step, 12 parameters of 64 x 64", "optimizers", 0.3)
    def _optimizer(lib, draw, name=_name):
        parameters = [draw(lib, 64, 64, grad=True) for _ in range(12)]
        for p in parameters:
            p.grad = p.detach() * 0.1
        return getattr(lib.module.optim, name)(parameters, lr=1e-4).step


# ---- distributions -------------------------------------------------------------------------------------------------


@case("Normal.log_prob, 1000", "distributions", 0.3)
def _log_prob(lib, draw):
    normal, x = lib.module.distributions.Normal(draw(lib, 1000), 1.5), draw(lib, 1000)
    return lambda: normal.log_prob(x)


@case("Normal.rsample, 1000", "distributions", 0.3)
def _rsample(lib, draw):
    return lib.module.distributions.Normal(draw(lib, 1000), 1.5).rsample


@case("Categorical of 10: made, sampled, log_prob, 100 rows", "distributions", 0.3)
def _categorical(lib, draw):
    logits, make = draw(lib, 100, 10), lib.module.distributions.Categorical

    def call():
        chosen = make(logits=logits)
        return chosen.log_prob(chosen.sample())

    return call


@case("MultivariateNormal of 8: made, log_prob, 100 rows", "distributions", 0.3)
def _multivariate(lib, draw):
    make, place, x = lib.module.distributions.MultivariateNormal, draw(lib, 8), draw(lib, 100, 8)
    spread = lib.module.eye(8) * 2
    return lambda: make(place, spread).log_prob(x)


@case("kl_divergence of Normals, 1000", "distributions", 0.3)
def _kl(lib, draw):
    d = lib.module.distributions
    p, q = d.Normal(draw(lib, 1000), 1.5), d.Normal(draw(lib, 1000), 0.5)
    return lambda: d.kl_divergence(p, q)
