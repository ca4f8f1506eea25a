"""Products give the same bits with every number of threads, whatever kernels the BLAS has chosen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "helpers" / "product_bits.py"
# OpenBLAS takes OPENBLAS_CORETYPE at its word: kernels that the processor lacks end the process
NEEDS = {
    None: set(),
    "Haswell": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "Zen": {"avx2", "fma"},
    "Sandybridge": {"avx"},
}


def processor_flags():
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return set(next((line for line in lines if line.startswith("flags")), "").split())


@pytest.mark.slow
@pytest.mark.parametrize("family", NEEDS, ids=str)
def test_products_have_the_same_bits_with_every_number_of_threads(family):
    if not NEEDS[family] <= processor_flags():
        pytest.skip(f"this processor does not run the kernels of {family}")
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    env |= {"OPENBLAS_CORETYPE": family} if family else {}
    env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, str(PROGRAM)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["compared"] > 600
    assert found["differing"] == [], f"kernels of {found['core']}"
