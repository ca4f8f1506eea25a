"""Every distribution beside PyTorch's: samples of one seed, densities, moments, entropies, expansion, divergences."""

import itertools
import warnings

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import distributions as ours

torch = pytest.importorskip("torch", reason="compares with PyTorch")
theirs = torch.distributions

FACTOR = [[1.0, 0, 0], [0.3, 0.8, 0], [-0.2, 0.4, 1.3]]
LOC_SCALE = {"loc": [0.1, 0.5], "scale": [1.0, 2.0]}
SHARES = {"probs": [[0.2, 0.3, 0.5]]}
KINDS = {
    "Normal": LOC_SCALE,
    "Laplace": LOC_SCALE,
    "Cauchy": LOC_SCALE,
    "Gumbel": LOC_SCALE,
    "HalfNormal": {"scale": [1.0, 2.0]},
    "HalfCauchy": {"scale": [1.0, 2.0]},
    "Uniform": {"low": [0.2, 0.1], "high": [0.7, 0.9]},
    "Exponential": {"rate": [1.0, 2.0]},
    "Pareto": {"scale": [1.0, 2.0], "alpha": [3.0, 4.0]},
    "Weibull": {"scale": [1.0, 2.0], "concentration": [1.5, 3.0]},
    "Gamma": {"concentration": [0.7, 3.0], "rate": [1.0, 2.0]},
    "Chi2": {"df": [3.0, 5.0]},
    "Beta": {"concentration1": [0.7, 3.0], "concentration0": [2.0, 1.5]},
    "Dirichlet": {"concentration": [[0.7, 3.0, 2.0]]},
    "FisherSnedecor": {"df1": [3.0, 5.0], "df2": [6.0, 7.0]},
    "StudentT": {"df": [3.0, 5.0], "loc": [0.1, 0.2], "scale": [1.0, 2.0]},
    "InverseGamma": {"concentration": [3.0, 4.0], "rate": [1.0, 2.0]},
    "Bernoulli": {"probs": [0.3, 0.7]},
    "Geometric": {"probs": [0.3, 0.7]},
    "Binomial": {"total_count": [10.0, 10.0], "probs": [0.3, 0.7]},
    "NegativeBinomial": {"total_count": [10.0, 4.0], "probs": [0.3, 0.7]},
    "Poisson": {"rate": [0.5, 12.0]},
    "Categorical": SHARES,
    "Multinomial": {"total_count": 7, **SHARES},
    "OneHotCategorical": SHARES,
    "OneHotCategoricalStraightThrough": SHARES,
    "LogNormal": {"loc": [0.1, 0.5], "scale": [1.0, 0.4]},
    "LogisticNormal": {"loc": [0.1, 0.5], "scale": [1.0, 0.4]},
    "Kumaraswamy": {"concentration1": [1.7, 3.0], "concentration0": [2.0, 1.5]},
    "GeneralizedPareto": {"loc": [0.1, 0.2], "scale": [1.0, 2.0], "concentration": [0.2, -0.3]},
    "RelaxedBernoulli": {"temperature": 0.7, "probs": [0.3, 0.6]},
    "RelaxedOneHotCategorical": {"temperature": 0.7, **SHARES},
    "ContinuousBernoulli": {"probs": [0.3, 0.5]},
    "VonMises": {"loc": [0.1, 0.5], "concentration": [1.0, 6.0]},
    "MultivariateNormal": {"loc": [0.1, 0.2, 0.3], "scale_tril": FACTOR},
    "LowRankMultivariateNormal": {
        "loc": [0.1, 0.2, 0.3],
        "cov_factor": [[1.0, 0.2], [0.3, 0.4], [0.5, 0.6]],
        "cov_diag": [1.0, 2.0, 0.5],
    },
    "Wishart": {"df": 5.0, "scale_tril": FACTOR},
    "LKJCholesky": {"dim": 3, "concentration": [1.5]},
}
# PyTorch's mode of Kumaraswamy is NaN, and its Wishart draws again what was drawn well
LEFT_OUT = {("Kumaraswamy", "mode"), ("Wishart", "sample")}
NO_KL = {("Weibull", "Weibull")}  # PyTorch has it where all parameters are the same, that is, zero


def dtype_of(name):
    return "float32" if name == "GeneralizedPareto" else "float64"  # PyTorch's refuses float64


def make(library, module, name):
    dtype = getattr(module, dtype_of(name))
    return getattr(library, name)(
        **{k: v if isinstance(v, int) else module.tensor(v, dtype=dtype) for k, v in KINDS[name].items()}
    )


def both(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of what it does itself
        return make(theirs, torch, name), make(ours, tg, name)


def here(value):
    return tg.from_numpy(value.detach().numpy())


def found(name, what, ask, reference, *given):
    """PyTorch's answer and ours; None where it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = ask(reference[0], *given).detach().numpy()
    except NotImplementedError:
        return None
    return expected, ask(reference[1], *map(here, given)).detach().numpy()


@pytest.mark.parametrize("name", KINDS)
def test_samples_densities_and_moments_are_pytorchs(name):
    torch.manual_seed(1)
    tg.manual_seed(1)
    tolerance = {"rtol": 2e-5, "atol": 1e-6} if dtype_of(name) == "float32" else {"rtol": 1e-6, "atol": 1e-9}
    pair = both(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = pair[0].sample((5,))
    asked = {
        "sample": (lambda d: d.sample((5,)),),
        "log_prob": (lambda d, v: d.log_prob(v), drawn),
        "expand": (lambda d, v: d.expand((4, *d.batch_shape)).log_prob(v), drawn[:4]),
        **{what: (lambda d, w=what: getattr(d, w),) for what in ("mean", "mode", "variance", "stddev")},
        "entropy": (lambda d: d.entropy(),),
        "cdf": (lambda d, v: d.cdf(v.to(d.mean.dtype)), drawn),
        "enumerate_support": (lambda d: d.enumerate_support(),),
    }
    if not pair[0].event_shape:
        asked["icdf"] = lambda d, v: d.icdf(v), torch.rand(2, dtype=getattr(torch, dtype_of(name)))
    for what, (ask, *given) in asked.items():
        torch.manual_seed(2)
        tg.manual_seed(2)
        answers = None if (name, what) in LEFT_OUT else found(name, what, ask, pair, *given)
        if answers is not None:
            np.testing.assert_allclose(answers[1], answers[0], err_msg=what, **tolerance)
    assert pair[0].has_rsample == pair[1].has_rsample
    assert str(pair[0].support) == str(pair[1].support)


def test_divergences_of_all_pairs_are_pytorchs():
    made = {}
    for name in KINDS:
        made[name] = both(name)
    compared = 0
    for p, q in itertools.product(made, repeat=2):
        try:
            expected = theirs.kl_divergence(made[p][0], made[q][0]).numpy()
        except (NotImplementedError, RuntimeError, AttributeError):
            continue
        if (p, q) in NO_KL:
            continue
        value = ours.kl_divergence(made[p][1], made[q][1]).detach().numpy()
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-9, err_msg=f"{p} {q}")
        compared += 1
    assert compared >= 100


@pytest.mark.parametrize(
    "name", ["Gamma", "Beta", "Dirichlet", "StudentT", "LogNormal", "RelaxedBernoulli", "Kumaraswamy"]
)
def test_gradients_through_samples_are_pytorchs(name):
    gradients = []
    for library, module in ((theirs, torch), (ours, tg)):
        module.manual_seed(4)
        given = {k: module.tensor(v, dtype=module.float64) for k, v in KINDS[name].items()}
        for tensor in given.values():
            tensor.requires_grad_()
        getattr(library, name)(**given).rsample((50,)).square().sum().backward()
        gradients.append([tensor.grad.numpy() for tensor in given.values()])
    for mine, reference in zip(gradients[1], gradients[0]):
        np.testing.assert_allclose(mine, reference, rtol=2e-3)  # PyTorch's fitted slopes are good to three digits


def test_slopes_of_gamma_and_beta_samples_are_those_of_their_quantiles():
    st = pytest.importorskip("scipy.stats")
    a, h = np.array([0.1, 0.5, 1, 5, 30, 1000.0, 2e5]), 1e-5
    for q in (0.1, 0.5, 0.9):
        expected = (st.gamma.ppf(q, a * (1 + h)) - st.gamma.ppf(q, a * (1 - h))) / (2 * h * a)
        slope = tg._standard_gamma_grad(tg.from_numpy(a), tg.from_numpy(st.gamma.ppf(q, a)))
        np.testing.assert_allclose(slope.numpy(), expected, rtol=1e-5)
        for b in (0.5, 2.0, 40.0):
            x, alpha = st.beta.ppf(q, a[1:5], b), a[1:5]
            expected = (st.beta.ppf(q, alpha * (1 + h), b) - st.beta.ppf(q, alpha * (1 - h), b)) / (2 * h * alpha)
            slope = tg._dirichlet_grad(*map(tg.from_numpy, (x, alpha, alpha + b)))
            np.testing.assert_allclose(slope.numpy() * (1 - x), expected, rtol=1e-5)


def test_slopes_of_float32_are_those_of_float64_rounded():
    draws = np.random.default_rng(3)
    a, b = draws.uniform(0.05, 40, (2, 500)).astype(np.float32)
    gamma, beta = draws.gamma(a).astype(np.float32), draws.beta(a, b).clip(1e-4, 1 - 1e-4).astype(np.float32)
    for slope, given in ((tg._standard_gamma_grad, (a, gamma)), (tg._dirichlet_grad, (beta, a, a + b))):
        wide = slope(*[tg.tensor(v.astype(np.float64)) for v in given]).numpy()
        np.testing.assert_allclose(slope(*map(tg.tensor, given)).numpy(), wide, rtol=2e-7, atol=1e-30)


def test_slopes_far_out_keep_their_digits_whatever_is_beside_them():
    mpmath = pytest.importorskip("mpmath")

    def exact(a, x):
        with mpmath.workdps(60):
            a, x = mpmath.mpf(float(a)), mpmath.mpf(float(x))
            h, bounds, sign = a * mpmath.mpf(10) ** -18, (x, mpmath.inf), 1
            if x < a:
                bounds, sign = (0, x), -1
            up, down = (mpmath.gammainc(t, *bounds, regularized=True) for t in (a + h, a - h))
            density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
            return float(sign * (up - down) / (2 * h) / density)

    a = np.repeat([1e-3, 0.3, 1.5, 7, 200.0], 7)
    x = a * np.tile([0.01, 0.9, 1.1, 2, 5, 20, 60], 5) + np.tile([0, 0, 0, 1, 1, 1, 1], 5)
    found = tg._standard_gamma_grad(tg.from_numpy(a), tg.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, [exact(*pair) for pair in zip(a, x)], rtol=1e-11)
    alone = [tg._standard_gamma_grad(tg.tensor([p]), tg.tensor([q])).item() for p, q in zip(a.tolist(), x.tolist())]
    together = tg._standard_gamma_grad(tg.tensor(a.tolist()), tg.tensor(x.tolist()))
    assert together.tolist() == alone


def test_slopes_of_what_is_no_variable():
    inf, nan = float("inf"), float("nan")
    x = tg.tensor([nan, 1.0, 1.0, 0.0, 1.0, inf], dtype=tg.float64)
    a = tg.tensor([1.0, nan, -1.0, 2.0, 0.0, 2.0], dtype=tg.float64)
    np.testing.assert_array_equal(tg._standard_gamma_grad(a, x).numpy(), [nan, nan, nan, 0, nan, inf])
    place = tg.tensor([nan, 0.5, 0.5, 1e-300], dtype=tg.float64)
    a, total = (tg.tensor(v, dtype=tg.float64) for v in ([1.0, nan, 1.0, 2.0], [2.0, 2.0, nan, 5.0]))
    found = tg._dirichlet_grad(place, a, total)
    assert found[:3].isnan().all() and found[3] > 0


TRANSFORMS = {
    "exp": lambda t: t.ExpTransform(),
    "power": lambda t: t.ComposeTransform([t.ExpTransform(), t.PowerTransform(2.0)]),
    "sigmoid": lambda t: t.SigmoidTransform(),
    "tanh": lambda t: t.TanhTransform(cache_size=1),
    "softplus": lambda t: t.SoftplusTransform(),
    "affine": lambda t: t.AffineTransform(1.0, -2.0, event_dim=1),
    "stick": lambda t: t.StickBreakingTransform(),
    "softmax": lambda t: t.SoftmaxTransform(),
    "corr": lambda t: t.CorrCholeskyTransform(),
    "independent": lambda t: t.IndependentTransform(t.ExpTransform(), 1),
    "reshape": lambda t: t.ReshapeTransform((6,), (2, 3)),
    "cat": lambda t: t.CatTransform([t.ExpTransform(), t.AffineTransform(0.5, 2.0)], dim=-1, lengths=[2, 4]),
    "stack": lambda t: t.StackTransform([t.ExpTransform(), t.SigmoidTransform()], dim=0),
    "inverse": lambda t: t.ComposeTransform([t.ExpTransform(), t.ExpTransform().inv, t.TanhTransform()]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_pytorchs(name):
    values = np.random.default_rng(0).standard_normal((2, 6)) / 2
    results = []
    for library, module in ((theirs.transforms, torch), (ours.transforms, tg)):
        transform, x = TRANSFORMS[name](library), module.from_numpy(values)
        y = transform(x)
        back = transform.inv(y)
        shapes = [tuple(transform.forward_shape(x.shape)), tuple(transform.inverse_shape(y.shape))]
        slope = None if name == "softmax" else transform.log_abs_det_jacobian(x, y).numpy()
        results.append(
            (y.numpy(), back.numpy(), slope, shapes, transform.domain.event_dim, transform.codomain.event_dim)
        )
        assert name in ("softmax", "reshape") or transform.bijective
    for theirs_, mine in zip(*results):
        if isinstance(mine, np.ndarray):
            np.testing.assert_allclose(mine, theirs_, rtol=1e-9, atol=1e-12)
        else:
            assert mine == theirs_


CONSTRAINTS = [
    "real", "positive", "nonnegative", "unit_interval", "simplex", "real_vector", "corr_cholesky", "lower_cholesky",
    "positive_definite", "interval(-1, 2)", "less_than(3)", "greater_than(1)", "half_open_interval(0.0, 4.0)",
]  # fmt: skip


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_registries_lead_into_the_constraint(registry, constraint):
    shape = (3, 3) if constraint in ("lower_cholesky", "positive_definite") else (3,)
    values = np.random.default_rng(1).standard_normal((4, *shape))
    results = []
    for library, module in ((theirs, torch), (ours, tg)):
        wanted = eval(f"constraints.{constraint}", {"constraints": library.constraints})
        try:
            y = getattr(library, registry)(wanted)(module.from_numpy(values))
            results.append(y.numpy())
            assert bool(wanted.check(y).all())
        except NotImplementedError as error:
            results.append("does not have yet" not in str(error))
    assert type(results[0]) is type(results[1]) or results[1] is False
    if isinstance(results[1], np.ndarray):
        np.testing.assert_allclose(results[1], results[0], rtol=1e-9)


def test_a_mixture_is_pytorchs():
    pair = []
    for library, module in ((theirs, torch), (ours, tg)):
        module.manual_seed(3)
        loc = module.tensor([[-1.0, 0.5], [2.0, 1.0]])
        mixture = library.MixtureSameFamily(
            library.Categorical(module.tensor([0.3, 0.7])), library.Independent(library.Normal(loc, 1.0), 1)
        )
        value = mixture.sample((4,))
        pair.append([v.numpy() for v in (value, mixture.log_prob(value), mixture.mean, mixture.variance)])
        assert tuple(mixture.expand((2,)).sample().shape) == (2, 2)
    for mine, reference in zip(*pair):
        np.testing.assert_allclose(mine, reference, rtol=1e-5)
    with pytest.raises(ValueError, match="does not equal"):
        ours.MixtureSameFamily(ours.Categorical(tg.ones(3)), ours.Normal(tg.zeros(2), 1.0))


def test_what_does_not_fit_is_refused():
    t = ours.transforms
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        t.ExpTransform(cache_size=2)
    with pytest.raises(ValueError, match="different numbers of elements"):
        t.ReshapeTransform((2,), (3,))
    with pytest.raises(ValueError, match="must be a Transform or a list"):
        ours.TransformedDistribution(ours.Normal(0.0, 1.0), [1])
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        ours.biject_to(ours.constraints.boolean)
    with pytest.raises(TypeError, match="Constraint subclass or instance"):
        ours.transform_to.register(int, None)(lambda c: c)
    with pytest.raises(ValueError, match="Exactly one of"):
        ours.MultivariateNormal(tg.zeros(2))
    with pytest.raises(ValueError, match="Found dim=1"):
        ours.LKJCholesky(1)
    with pytest.raises(NotImplementedError, match="inhomogeneous"):
        ours.Multinomial(2.5, tg.ones(2))


@pytest.mark.parametrize(
    "name", ["HalfNormal", "HalfCauchy", "LogNormal", "RelaxedBernoulli", "Kumaraswamy", "InverseGamma"]
)
def test_what_is_made_of_another_distribution_shows_it(name):
    """Libraries read and replace `base_dist`."""
    reference, mine = both(name)
    assert isinstance(mine, ours.TransformedDistribution)
    assert type(mine.base_dist).__name__ == type(reference.base_dist).__name__
    assert [type(t).__name__ for t in mine.transforms] == [type(t).__name__ for t in reference.transforms]
