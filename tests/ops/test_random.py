"""Random ops: PyTorch's stream after manual_seed, number by number, and the state of generators."""

import copy
import hashlib
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tinygrad_ext as tg

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "random.json").read_text())["streams"]


def _agree(got, record):
    flat = got.flatten().tolist()
    if got.dtype not in (tg.float64, tg.int64):
        flat = [float(f"{v:.9g}") for v in flat]
    if record["exact"]:
        return flat == record["values"]
    return all(abs(a - b) <= 1e-14 * max(1, abs(b)) for a, b in zip(flat, record["values"], strict=True))


@pytest.mark.parametrize("stream", GOLDEN, ids=lambda s: f"seed {s['seed']}")
def test_draws_are_those_of_pytorch(stream):
    tg.manual_seed(stream["seed"])
    for record in stream["draws"]:
        got = eval(record["draw"], {"torch": tg})
        assert _agree(got, record), record["draw"]
    assert hashlib.sha256(tg.get_rng_state().numpy().tobytes()).hexdigest() == stream["state"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: tg.rand(3, generator=g),
        lambda g: tg.randn(3, generator=g),
        lambda g: tg.randint(9, (3,), generator=g),
        lambda g: tg.randperm(5, generator=g),
        lambda g: tg.zeros(3).uniform_(generator=g),
        lambda g: tg.zeros(3).normal_(generator=g),
        lambda g: tg.zeros(3).exponential_(generator=g),
        lambda g: tg.bernoulli(tg.full((3,), 0.5), generator=g),
        lambda g: tg.multinomial(tg.ones(5), 3, generator=g),
        lambda g: tg.normal(tg.zeros(3), 1.0, generator=g),
        lambda g: tg.normal(0.0, 1.0, (3,), generator=g),
        lambda g: tg.zeros(3).random_(generator=g),
        lambda g: tg.rand_like(tg.zeros(3), generator=g),
    ],
)
def test_a_given_generator_is_drawn_from_and_the_default_left_alone(draw):
    g = tg.Generator().manual_seed(1)
    before = tg.get_rng_state()
    first = draw(g)
    assert (tg.get_rng_state() == before).all()
    assert draw(tg.Generator().manual_seed(1)).tolist() == first.tolist()


def test_a_strided_target_is_filled_in_memory_order():
    tg.manual_seed(3)
    t = tg.empty(4, 5).t().uniform_()
    tg.manual_seed(3)
    assert t.t().tolist() == tg.empty(4, 5).uniform_().tolist()


def test_a_given_result_is_filled_in_its_own_order():
    p = tg.rand(4, 5)
    results = [tg.empty(5, 4).t(), tg.empty(4, 10)[:, ::2], tg.empty(4, 10, dtype=tg.int32).t()[::2].t()]
    for given in results:
        tg.manual_seed(3)
        tg.bernoulli(p, out=given)
        filled = tg.empty_strided((4, 5), given.stride()).bernoulli_(p, generator=tg.Generator().manual_seed(3))
        assert given.tolist() == filled.tolist()


def test_threads_that_share_a_generator_draw_whole_blocks():
    """A draw keeps the interpreter's lock: its numbers follow each other in the stream."""
    draws, n = 8, 50_000
    stream = tg.empty(draws * n).uniform_(generator=tg.Generator().manual_seed(7)).reshape(draws, n)
    g = tg.Generator().manual_seed(7)
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda _: tg.empty(n).uniform_(generator=g), range(draws)))
    assert sorted(t.tolist() for t in got) == sorted(stream.tolist())


def test_only_the_window_of_a_view_is_written():
    t = tg.zeros(4, 4)
    t[1:3, ::2].normal_()
    assert (t != 0).sum().item() == 4


def test_meta_tensors_draw_nothing():
    before = tg.get_rng_state()
    tg.rand(3, device="meta")
    tg.zeros(3, device="meta").normal_()
    assert (tg.get_rng_state() == before).all()


# ---- generators


def test_state_survives_reading_setting_pickling_and_cloning():
    g = tg.Generator().manual_seed(7)
    tg.randn(3, generator=g)
    copies = [tg.Generator().set_state(g.get_state()), pickle.loads(pickle.dumps(g)), g.clone_state(), copy.deepcopy(g)]
    want = tg.randn(5, generator=g).tolist()
    assert all(tg.randn(5, generator=c).tolist() == want for c in copies)


def test_fork_rng_leaves_the_default_generator_where_it_stood():
    from tinygrad_ext.random import fork_rng

    tg.manual_seed(0)
    with fork_rng():
        inside = tg.rand(2).tolist()
    assert tg.rand(2).tolist() == inside


def test_seeds():
    assert tg.manual_seed(5) is tg.default_generator and tg.initial_seed() == 5
    assert isinstance(tg.seed(), int) and tg.initial_seed() != 5
    tg.manual_seed(0)


@pytest.mark.parametrize(
    "state", [None, 3, tg.zeros(5056), tg.zeros(10, dtype=tg.uint8), tg.zeros(5056, dtype=tg.uint8)]
)
def test_what_is_no_state_is_refused(state):
    with pytest.raises((TypeError, RuntimeError), match="set_state"):
        tg.set_rng_state(state)


# ---- refusals


@pytest.mark.parametrize(
    "make, error, fragment",
    [
        (lambda: tg.zeros(2).uniform_(2, 1), RuntimeError, "uniform_ expects to return a [from, to) range"),
        (lambda: tg.zeros(2).normal_(0, -1), RuntimeError, "normal expects std >= 0.0"),
        (lambda: tg.zeros(2).exponential_(0), RuntimeError, "exponential_ expects lambda > 0.0"),
        (lambda: tg.zeros(2).geometric_(1.0), RuntimeError, "geometric_ expects p to be in (0, 1)"),
        (lambda: tg.zeros(2).cauchy_(0, 0), RuntimeError, "cauchy_ expects sigma > 0.0"),
        (lambda: tg.zeros(2).log_normal_(0, 0), RuntimeError, "log_normal_ expects std > 0.0"),
        (lambda: tg.zeros(2).bernoulli_(1.5), RuntimeError, "bernoulli_ expects p to be in [0, 1]"),
        (lambda: tg.bernoulli(tg.tensor([2.0])), RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
        (lambda: tg.zeros(2, dtype=tg.int64).normal_(), NotImplementedError, "not implemented for 'Long'"),
        (lambda: tg.zeros(2, dtype=tg.int64).exponential_(), RuntimeError, "continuous probability distribution"),
        (lambda: tg.zeros(2, dtype=tg.int8).random_(0, 300), RuntimeError, "to - 1 is out of bounds"),
        (lambda: tg.randint(300, (2,), dtype=tg.uint8), RuntimeError, "to - 1 is out of bounds"),
        (lambda: tg.randint(2, 1, (2,)), RuntimeError, "random_ expects 'from' to be less than 'to'"),
        (lambda: tg.randperm(300, dtype=tg.uint8), RuntimeError, "n is too large"),
        (lambda: tg.multinomial(tg.ones(3), 4), RuntimeError, "cannot sample n_sample > prob_dist.size(-1) samples"),
        (lambda: tg.multinomial(tg.ones(3), 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
        (lambda: tg.multinomial(tg.zeros(3), 1), RuntimeError, "invalid multinomial distribution"),
        (lambda: tg.multinomial(-tg.ones(3), 1), RuntimeError, "`inf`, `nan` or element < 0"),
        (lambda: tg.multinomial(tg.ones(2, 0), 1), RuntimeError, "no categories"),
        (lambda: tg.rand(2, generator=3), TypeError, "Generator"),
        (lambda: tg.zeros(1).expand(3).uniform_(), RuntimeError, "single memory location"),
        (lambda: tg.ones(2, requires_grad=True).normal_(), RuntimeError, "leaf"),
    ],
)
def test_bad_parameters_are_refused(make, error, fragment):
    with pytest.raises(error) as raised:
        make()
    assert fragment in str(raised.value)


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32, tg.float64])
def test_binomial_of_counts_that_are_no_numbers_ends(dtype):
    counts = tg.tensor([float("inf"), float("nan"), float("-inf"), 4.0, float("inf")], dtype=dtype)
    chances = tg.tensor([0.5, 0.25, 0.5, 1.0, 0.75], dtype=dtype)
    drawn = tg.binomial(counts, chances)
    assert drawn[[0, 1, 4]].isnan().all() and drawn[2:4].tolist() == [0.0, 4.0]


@pytest.mark.parametrize("dtype", [tg.float32, tg.float64])
@pytest.mark.parametrize(
    "categories, samples", [(128, 9), (129, 8), (137, 2), (200, 9), (257, 150), (1000, 7), (3000, 3)]
)
def test_many_categories_without_replacement(categories, samples, dtype):
    weights = tg.arange(categories, dtype=dtype) % 3
    for _ in range(3):
        drawn = tg.multinomial(weights.expand(5, categories), samples)
        assert all(len(set(row)) == samples for row in drawn.tolist())
        assert (drawn % 3 != 0).all()


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_integers_without_a_sign_are_drawn_as_those_with_one(name):
    dtype = getattr(tg, name)
    for bounds in ((5,), (3, 60000)):
        tg.manual_seed(3)
        drawn = tg.empty(40, dtype=dtype).random_(*bounds).tolist()
        tg.manual_seed(3)
        assert drawn == tg.empty(40, dtype=tg.int64).random_(*bounds).tolist()
    with pytest.raises(RuntimeError, match="from is out of bounds"):
        tg.empty(2, dtype=dtype).random_(-5, 5)
    if name != "uint64":
        with pytest.raises(RuntimeError, match="to - 1 is out of bounds"):
            tg.empty(2, dtype=dtype).random_(0, 2**32 + 1)
