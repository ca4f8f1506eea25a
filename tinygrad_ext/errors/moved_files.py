"""Files of PyTorch whose contents stand in a file of another name here: room, our file, PyTorch's."""

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
    "utils": {"tensorboard": "tensorboard.writer"},
    "cuda": {"amp": "amp.autocast_mode amp.common amp.grad_scaler"},
    "signal": {"windows": "windows.windows"},
}
# place in PyTorch -> the module here, both without the package's name in front
MOVED = {
    f"{room}.{name}": f"{room}.{file}"
    for room, files in _FILES.items()
    for file, names in files.items()
    for name in names.split()
}
MOVED |= {"_library.infer_schema": "library.infer", "_library.custom_ops": "library.definition"}
MOVED["nn.grad"] = "nn.grad"  # only who asks for it pays for it
