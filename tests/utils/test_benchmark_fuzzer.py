"""Random inputs of measurements: the same for the same seed, and PyTorch's parameters."""

import importlib

import pytest

import tinygrad_ext as tg
from tinygrad_ext.utils import benchmark


def _fuzzer(library, seed):
    b = importlib.import_module(f"{library.__name__}.utils.benchmark")
    return b.Fuzzer(
        [
            b.FuzzedParameter("dim", distribution={1: 0.25, 2: 0.25, 3: 0.5}, strict=True),
            [b.FuzzedParameter(f"k{i}", 2, 30, "loguniform" if i else "uniform") for i in range(3)],
            b.FuzzedParameter("step", distribution={1: 0.75, 3: 0.25}),
            b.FuzzedParameter("other", distribution={1: 0.5, b.ParameterAlias("k0"): 0.5}),
            b.FuzzedParameter("share", 0.0, 1.0, "uniform"),
        ],
        [
            b.FuzzedTensor("x", ("k0", "k1", "k2"), ("step", 1, 2), 0.3, 4, 4000, dim_parameter="dim"),
            b.FuzzedTensor("y", ("other",), dtype=library.int64, max_allocation_bytes=4000),
        ],
        constraints=[lambda params: params["k1"] % 3 > 0],
        seed=seed,
    )


@pytest.mark.parametrize("seed", [0, 17, 2**31])
def test_parameters_and_layouts_are_pytorchs(monkeypatch, seed):
    torch = pytest.importorskip("torch")
    fuzzer = importlib.import_module("torch.utils.benchmark.utils.fuzzer")
    # its check of the sum of probabilities says the opposite of what it should
    monkeypatch.setattr(fuzzer.FuzzedParameter, "_check_distribution", lambda self, distribution: distribution)
    seeded = torch.manual_seed  # which may refuse NumPy's ints
    monkeypatch.setattr(torch, "manual_seed", lambda seed: seeded(int(seed)))
    ours, theirs = _fuzzer(tg, seed), _fuzzer(torch, seed)
    for (x, like, params), (u, wanted, theirs_params) in zip(ours.take(20), theirs.take(20), strict=True):
        assert params == theirs_params
        for name in "xy":
            assert tuple(x[name].shape) == tuple(u[name].shape) and x[name].stride() == u[name].stride()
            assert {k: v for k, v in like[name].items() if k != "order"} == {
                k: v for k, v in wanted[name].items() if k != "order"
            }
    assert ours.rejection_rate == theirs.rejection_rate > 0


def test_the_same_seed_gives_the_same_tensors():
    first, again = ([t for t, _, _ in _fuzzer(tg, 3).take(4)] for _ in range(2))
    assert all(tg.equal(a[k], b[k]) for a, b in zip(first, again) for k in "xy")
    assert {t["y"].dtype for t in first} == {tg.int64} and all(1 <= t["y"].min() <= t["y"].max() < 127 for t in first)


def test_sparse_tensors():
    parameters = [
        benchmark.FuzzedParameter("n", 8, 16, "uniform"),
        benchmark.FuzzedParameter("density", 0.1, 0.5, "uniform"),
        benchmark.FuzzedParameter("coalesced", distribution={True: 0.5, False: 0.5}),
        benchmark.FuzzedParameter("sparse_dim", 1, 2, "uniform"),
    ]
    tensor = benchmark.FuzzedSparseTensor("x", ("n", "n"), sparse_dim="sparse_dim")
    kinds = set()
    for tensors, like, params in benchmark.Fuzzer(parameters, [tensor], seed=1).take(12):
        x = tensors["x"]
        assert x.layout is tg.sparse_coo and x.shape == (params["n"],) * 2 and like["x"]["numel"] == x.numel()
        assert x.sparse_dim() == params["sparse_dim"] == like["x"]["sparse_dim"]
        kinds.add((x.is_coalesced(), like["x"]["is_hybrid"]))
    assert len(kinds) == 4


def test_what_does_not_go_together_is_refused():
    parameter, alias = benchmark.FuzzedParameter, benchmark.ParameterAlias
    for args in (("a", 1, 2, "normal"), ("a", None, None, {1: 0.5}), ("a", None, None, {1: 2.0, 2: -1.0})):
        with pytest.raises(AssertionError):
            parameter(*args)
    with pytest.raises(AssertionError, match="minval"):
        parameter("a", 1, distribution={1: 1.0})
    with pytest.raises(ValueError, match="Duplicate names"):
        benchmark.Fuzzer([parameter("a", 1, 2, "uniform")], [benchmark.FuzzedTensor("a", (1,))])
    circle = [parameter("a", distribution={alias("b"): 1.0}), parameter("b", distribution={alias("a"): 1.0})]
    with pytest.raises(ValueError, match="cycle"):
        next(benchmark.Fuzzer(circle, [], seed=0).take(1))
    with pytest.raises(ValueError, match="valid parameters"):
        next(benchmark.Fuzzer([], [benchmark.FuzzedTensor("x", (2,), min_elements=3)], seed=0).take(1))


def test_they_are_found_where_pytorch_has_them(as_torch):
    for place, name in (("fuzzer", "Fuzzer"), ("fuzzer", "ParameterAlias"), ("sparse_fuzzer", "FuzzedSparseTensor")):
        module = importlib.import_module(f"torch.utils.benchmark.utils.{place}")
        assert getattr(module, name) is getattr(benchmark, name)
    for place in ("op_fuzzers.binary", "op_fuzzers.unary", "examples.fuzzer", "utils.timer", "utils.common"):
        importlib.import_module(f"torch.utils.benchmark.{place}")
