"""The table from a language that is neither C nor C++."""

import os
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext.extension import elf

from .conftest import SAMPLES


@pytest.mark.slow  # two runs of a compiler that is not in memory yet
def test_zig(tmp_path):
    pytest.importorskip("ziglang", reason="ziglang is not installed: pip install ziglang")
    zig, include = [sys.executable, "-m", "ziglang"], tg.utils.include_paths()[0]
    env = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(tmp_path / "cache")}
    words = [*zig, "translate-c", "-DTGX_NO_TABLE", "-lc", f"{include}/tgx.h"]
    header = subprocess.run(words, check=True, capture_output=True, text=True, env=env).stdout
    (tmp_path / "tgx.zig").write_text(header)
    (tmp_path / "halves.zig").write_text((SAMPLES / "halves.zig").read_text())
    words = [*zig, "build-lib", "-dynamic", "-O", "ReleaseFast", "-lc", "halves.zig", "-femit-bin=halves.so"]
    subprocess.run(words, check=True, cwd=tmp_path, env=env)
    assert not [name for name in elf.undefined(tmp_path / "halves.so") if "tgx" in name or name.startswith("Py")]
    assert tg.ops.load_library(tmp_path / "halves.so").ops == ["halves::half"]
    for dtype in (tg.float32, tg.float64):
        x = tg.arange(6, dtype=dtype).reshape(2, 3).t()
        assert tg.ops.halves.half(x).equal(x / 2)
    assert tg.ops.halves.half(tg.ones(2, 3, device="meta")).shape == (2, 3)
    with pytest.raises(TypeError, match=r"halves::half: x must be float32 or float64"):
        tg.ops.halves.half(tg.arange(3))
