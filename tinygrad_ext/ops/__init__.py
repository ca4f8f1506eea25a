"""One record per op, one family per file. FAMILIES is the order in which they are registered."""

FAMILIES = ("arithmetic", "compare", "logical", "elementary", "rounding", "powers", "special", "activation", "create", "random", "convert", "view", "window", "join", "index", "sort", "reduce", "moments", "scan", "linalg", "normalize", "loss", "conv", "embed")
# compiled modules whose kernels the records name
NATIVE = ("create", "ranges", "convert", "view", "window", "join", "basic_index", "index", "sort", "reduce", "moment", "median", "scan", "matmul", "softmax", "norm", "loss", "conv", "pool", "embed", "sample")
