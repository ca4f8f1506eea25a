"""Writes ops.npz: what PyTorch 2.13 gives for the float64 and int64 samples of every op.

    make golden        (installs PyTorch for it)

The sweep compares with these values on every machine, also where PyTorch is not installed. Keys are
"op/dtype/sample number/result number".
"""

import warnings
from pathlib import Path

import numpy as np
import torch

from tinygrad_ext.testing import beside_torch, compare, sweep

DTYPES = ("float64", "int64")


def values():
    """Key to array, over all ops that PyTorch has and whose values are defined."""
    found = {}
    for op in sweep.ops():
        fn = beside_torch.torch_function(op, torch)
        if fn is None or "unset" in (op.record.tags or "").split():
            continue
        for dtype in DTYPES:
            if dtype not in sweep.supported(op):
                continue
            for i, sample in enumerate(sweep.samples(op, dtype)):
                torch.manual_seed(0)
                try:
                    to_torch = beside_torch.to_torch
                    result = fn(*to_torch(sample.args, torch), **to_torch(sample.kwargs, torch))
                except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
                    continue
                for j, r in enumerate(compare.flatten(result)):
                    if isinstance(r, (torch.Tensor, bool, int, float)):
                        found[f"{op.name}/{dtype}/{i}/{j}"] = compare.to_numpy(r)
    return found


def main():
    assert torch.__version__.startswith("2.13"), f"golden values are PyTorch 2.13's, not {torch.__version__}'s"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = values()
    path = Path(__file__).with_name("ops.npz")
    np.savez_compressed(path, **{k.replace("/", "|"): v for k, v in found.items()})
    print(
        f"{len(found)} results of {len({k.split('/')[0] for k in found})} ops in {path.name}, "
        f"{path.stat().st_size:,} bytes"
    )


if __name__ == "__main__":
    main()
