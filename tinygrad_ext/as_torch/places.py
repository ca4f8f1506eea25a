"""Module paths of PyTorch that have no file here, and which module of ours answers for each.

The rooms have PyTorch's names themselves. Listed are single files of PyTorch whose contents stand in a file of another
name, and modules of which libraries touch a few names at import: those are in `stand_ins`.
"""

_FILES = {
    "distributions": {
        "bounded": "exponential pareto uniform weibull",
        "counts": "binomial negative_binomial poisson",
        "discrete": "bernoulli categorical geometric",
        "from_others": "generalized_pareto kumaraswamy log_normal logistic_normal",
        "gamma": "beta chi2 dirichlet inverse_gamma",
        "matrices": "lkj_cholesky wishart",
        "mixture": "mixture_same_family",
        "multivariate": "lowrank_multivariate_normal multivariate_normal",
        "one_hot": "multinomial one_hot_categorical",
        "ratios": "fishersnedecor studentT",
        "real_line": "cauchy gumbel half_cauchy half_normal laplace normal",
        "relaxed": "relaxed_bernoulli relaxed_categorical",
        "transformed": "transformed_distribution",
    },
    "nn.modules": {"pixelshuffle": "channelshuffle", "pairs": "distance"},
    "autograd": {"modes": "grad_mode"},
}
STAND_INS = frozenset(
    [
        "_C",
        "_VF",
        "_dynamo",
        "_jit_internal",
        "_tensor",
        "_utils",
        "accelerator",
        "compiler",
        "cpu",
        "distributed",
        "functional",
        "hub",
        "mps",
        "nn.attention",
        "nn.common_types",
        "nn.grad",
        "nn.parallel",
        "onnx",
        "sparse",
        "storage",
        "torch_version",
        "types",
        "utils._contextlib",
        "utils.data._utils",
        "utils.data._utils.collate",
        "utils.dlpack",
        "utils.model_zoo",
        "version",
        "xpu",
    ]
)


def _table():
    return {
        f"{room}.{name}": f"{room}.{file}"
        for room, files in _FILES.items()
        for file, names in files.items()
        for name in names.split()
    }


_MOVED = _table()


def answers(name):
    """What stands for a module path, both without the package's name in front; None where nothing does."""
    if name in STAND_INS:
        return "as_torch.stand_ins." + name.replace(".", "_")
    return _MOVED.get(name)
