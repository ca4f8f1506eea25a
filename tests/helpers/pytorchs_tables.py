"""PyTorch's own tables of samples, without what takes most of their time and serves no one here.

Every sample looks up the whole stack for a unittest around it, and every seed writes the stack down once for each kind
of accelerator that may come to be used.
"""

import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db
from torch.testing._internal.opinfo import core

__all__ = ["module_db", "op_db", "optim_db"]

common_utils.extract_test_fn = core.extract_test_fn = lambda: None
torch.random._manual_seed_impl = torch.default_generator.manual_seed
