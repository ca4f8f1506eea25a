"""exp, sigmoid and tanh of float32 have loops of their own: the bits of an element depend on nothing but its value."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import tinygrad_ext as tg

from .test_accuracy import arguments

NAMES = ("exp", "sigmoid", "tanh")
LIMITS = [88.72283, 88.72284, 89, 89.00001, -87.33655, -103.97207, -103.97208, -104, -105, -151, 0.55, 9.1, 105.0, 1e30]


def sample():
    edges = np.array([sign * x for x in LIMITS for sign in (1, -1)], np.float32)
    near = [np.nextafter(edges, np.float32(np.inf)), np.nextafter(edges, np.float32(-np.inf))]
    return np.concatenate([arguments(5000), edges, *near])


def bits(t):
    """With one nan for all of them, whose payload is nobody's."""
    a = np.where(np.isnan(t.numpy()), np.float32(np.nan), t.numpy())
    return a.view(np.uint32)


def digest():
    x = tg.tensor(sample())
    return hashlib.sha256(b"".join(bits(getattr(tg, name)(x)).tobytes() for name in NAMES)).hexdigest()


@pytest.mark.parametrize("name", NAMES)
def test_every_place_and_length_gives_the_same_bits(name):
    op, x = getattr(tg, name), tg.tensor(sample()[:400])
    wanted = bits(op(x))
    for first in range(0, 20, 3):
        for count in (1, 3, 15, 16, 17, 31, 33, 100):
            part = x[first : first + count]
            assert np.array_equal(bits(op(part)), wanted[first : first + count])
            assert np.array_equal(bits(op(tg.stack([part, part], 1)[:, 1])), wanted[first : first + count])
            changed, beyond = x.clone(), wanted.copy()
            getattr(changed[first : first + count], f"{name}_")()
            beyond[:first], beyond[first + count :] = bits(x)[:first], bits(x)[first + count :]
            assert np.array_equal(bits(changed), beyond)


def test_instruction_sets_with_fused_multiply_adds_agree():
    code = "from tests.ops.test_scaled_loops import digest\nprint(digest())"
    found = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"TINYGRAD_EXT_ISA": level, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for level in ("avx2", "avx512")
    ]
    assert found[0] == found[1]
