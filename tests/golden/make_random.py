"""Write random.json: what PyTorch's CPU generator draws, for tests that run without PyTorch.

Run it where PyTorch is installed: ``python tests/golden/make_random.py``. For each seed the draws are made one after
the other on one stream, so that state carried over (the spare normal, the place in the block) is tested too.
A draw is an expression in which ``torch`` is the package under test. ``exact`` is false where logarithm and cosine
of float64 may differ in the last bits. ``state`` is the SHA-256 of the generator's state after the last draw.
"""

import hashlib
import json
from pathlib import Path

import torch

SEEDS = [0, 42, -1, 2**40 + 7]

DRAWS = [
    "torch.rand(5)",
    "torch.randn(3)",  # odd: leaves a spare normal
    "torch.randint(0, 10, (6,))",
    "torch.randn(2)",  # begins with the spare
    "torch.randn(16)",  # chunks of 16 from here on
    "torch.randn(17)",  # and a tail
    "torch.rand(3, dtype=torch.float64)",
    "torch.randn(3, dtype=torch.float64)",
    "torch.randn(18, dtype=torch.float64)",
    "torch.rand(4, dtype=torch.float16)",
    "torch.rand(4, dtype=torch.bfloat16)",
    "torch.randn(19, dtype=torch.float16)",
    "torch.randn(19, dtype=torch.bfloat16)",
    "torch.empty(5).uniform_(-3, 5.1)",
    "torch.empty(5, dtype=torch.float64).uniform_(-3, 5.1)",
    "torch.empty(20).normal_(1.5, 0.3)",
    "torch.empty(4, 5).t().normal_()",  # strided: serial, in memory order
    "torch.normal(2.0, 3.0, (4,))",
    "torch.randint(-5, 2**28 - 6, (4,))",  # the widest range of 32-bit draws
    "torch.randint(-5, 2**28 - 5, (4,))",
    "torch.randint(0, 2**40, (4,))",
    "torch.randint(0, 200, (4,), dtype=torch.uint8)",
    "torch.empty(4, dtype=torch.int64).random_()",
    "torch.empty(4, dtype=torch.int8).random_()",
    "torch.empty(4).random_()",
    "torch.randperm(12)",
    "torch.bernoulli(torch.tensor([0.1, 0.5, 0.9, 0.0, 1.0]))",
    "torch.empty(12).bernoulli_(0.3)",
    "torch.nn.functional.dropout(torch.ones(12), 0.25)",
    "torch.empty(5).exponential_(1.7)",
    "torch.empty(5, dtype=torch.float64).exponential_()",
    "torch.empty(4).cauchy_(0.3, 2)",
    "torch.empty(4).log_normal_(0.2, 0.5)",
    "torch.empty(6).geometric_(0.3)",
    "torch.multinomial(torch.tensor([1.0, 2.0, 3.0, 4.0]), 6, replacement=True)",
    "torch.multinomial(torch.tensor([[1.0, 2.0, 3.0], [3.0, 0.5, 0.25]]), 2)",
    "torch.multinomial(torch.tensor([1.0, 2.0, 3.0, 4.0]), 1)",
    "torch.poisson(torch.tensor([0.0, 0.5, 4.0, 10.0, 300.0]))",
    "torch.binomial(torch.tensor([0.0, 5.0, 90.0, 200.0, 400.0]), torch.tensor([0.5, 0.3, 0.2, 0.9, 0.7]))",
    "torch._standard_gamma(torch.tensor([0.0, 0.05, 0.7, 1.0, 20.0]))",
    "torch._sample_dirichlet(torch.tensor([[0.05, 0.7, 3.0], [10.0, 1.0, 1.0]]))",
]
# Here a value passes through our own float64 logarithm, which is not the C library's.
INEXACT = {"torch.randn(18, dtype=torch.float64)", "torch.empty(5, dtype=torch.float64).exponential_()"}


def plain(values):
    """A tensor's elements as numbers that JSON gives back unchanged, with no more digits than the dtype needs."""
    flat = values.flatten().tolist()
    return flat if values.dtype in (torch.float64, torch.int64) else [float(f"{v:.9g}") for v in flat]


def stream(seed):
    """All draws from one seed, as a record of the file."""
    torch.manual_seed(seed)
    draws = [{"draw": draw, "exact": draw not in INEXACT, "values": plain(eval(draw))} for draw in DRAWS]
    state = hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()
    return {"seed": seed, "draws": draws, "state": state}


def check_portable_stream():
    """On Intel processors PyTorch takes bernoulli_ from MKL, one word for a whole tensor, and not from its stream."""
    torch.manual_seed(0)
    torch.empty(2).bernoulli_(0.5)
    used = int(torch.get_rng_state()[16:24].view(torch.int64))
    if used != 4:
        raise SystemExit(
            f"bernoulli_ used {used} words for 2 values, expected 4: this PyTorch draws through MKL; "
            "run on a processor of another maker"
        )


def main():
    check_portable_stream()
    golden = {"torch": torch.__version__, "streams": [stream(seed) for seed in SEEDS]}
    path = Path(__file__).with_name("random.json")
    path.write_text(json.dumps(golden).replace('{"draw"', '\n{"draw"') + "\n")  # a draw to a line, for the diff


if __name__ == "__main__":
    main()
