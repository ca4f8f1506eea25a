"""Products give the same bits with every number of threads, whatever kernels the BLAS has chosen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.conditions import FAMILIES, environment, runs_here

PROGRAM = Path(__file__).parents[1] / "helpers" / "product_bits.py"


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_products_have_the_same_bits_with_every_number_of_threads(family):
    if not runs_here(family):
        pytest.skip(f"this processor does not run the kernels of {family}")
    env = {**environment(family), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, str(PROGRAM)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["compared"] > 600
    assert found["differing"] == [], f"kernels of {found['core']}"
