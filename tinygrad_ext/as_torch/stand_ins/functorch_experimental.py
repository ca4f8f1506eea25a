"""functorch.experimental."""

from tinygrad_ext.func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

replace_all_batch_norm_modules = replace_all_batch_norm_modules_

__all__ = ["functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
