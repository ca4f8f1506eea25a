"""One record per op, one family per file. FAMILIES is the order in which they are registered."""

FAMILIES = ("arithmetic", "compare", "logical", "elementary", "rounding", "powers", "special", "activation", "create", "random", "convert", "view", "window", "putback", "join", "rearrange", "pad", "index", "index_along", "masks", "gather", "sort", "search", "reduce", "moments", "scan", "linalg", "einsum", "softmax", "normalize", "loss", "class_loss", "likelihood", "conv", "pool", "embed")
# compiled modules whose kernels the records name
NATIVE = ("create", "ranges", "convert", "view", "window", "putback", "join", "rearrange", "basic_index", "masks", "advanced", "index_along", "index", "gather", "sort", "search", "reduce", "moment", "median", "scan", "matmul", "softmax", "norm", "loss", "class_loss", "convolution", "pool", "embed", "sample")
