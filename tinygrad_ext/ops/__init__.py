"""One record per op, one family per file. FAMILIES is the order in which they are registered."""

FAMILIES = ("arithmetic", "compare", "logical", "elementary", "rounding", "powers", "special", "activation", "create", "random", "convert", "view", "window", "putback", "join", "rearrange", "pad", "index", "index_along", "masks", "gather", "sort", "reduce", "scan", "linalg", "softmax", "normalize", "loss", "conv", "embed")
# compiled modules whose kernels the records name
NATIVE = ("create", "ranges", "convert", "view", "window", "putback", "join", "rearrange", "basic_index", "masks", "advanced", "index_along", "index", "gather", "sort", "reduce", "scan", "matmul", "softmax", "norm", "loss", "conv", "pool", "embed", "sample")
