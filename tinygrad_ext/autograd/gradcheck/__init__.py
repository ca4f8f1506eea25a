"""Derivatives against finite differences: `gradcheck` for the first, `gradgradcheck` for the second.

Read `check` for the order of the checks. `subject` is the function under test, `places` its sparse arguments;
`numerical` and `analytical` give the two Jacobians, `compare` puts them side by side; `projection` checks large ones
by random sums, `sampling` by a part; `forward` compares forward mode; `kinks` explains a mismatch;
`rules` are what every backward must obey; `result` is what comes back. Only `first`, `second` and `error` are imported
with the package: the rest needs NumPy.
"""

from tinygrad_ext.autograd.gradcheck.error import GradcheckError
from tinygrad_ext.autograd.gradcheck.first import gradcheck
from tinygrad_ext.autograd.gradcheck.second import gradgradcheck

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
