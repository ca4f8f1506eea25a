"""The plugin in Zig, built against each header of the table and run by this core and by a pretended one of 1.0.

Not among the tests of each run: `make zig` installs the compiler, a package of Python's of 100 MB, and runs it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg

pytest.importorskip("ziglang", reason="pip install ziglang brings the compiler")

HERE = Path(__file__).parent
NOW = Path(tg.utils.include_paths()[0]) / "tgx.h"
SOURCE = HERE.parents[1] / "plugins" / "waves" / "src" / "tgx_waves" / "waves.zig"
CHECK = """
import sys
import tinygrad_ext as tg
tg.ops.load_library(sys.argv[1])
assert tg.ops.waves.triangle(tg.tensor([0, 0.25, 0.5, -0.125])).tolist() == [-1, 0, 1, -0.5]
x = tg.tensor([0.2, 0.7, -0.3], dtype=tg.float64, requires_grad=True)
f = lambda x: tg.ops.waves.triangle(x * x, 0.8)
assert tg.autograd.gradcheck(f, (x,)) and tg.autograd.gradgradcheck(f, (x,))
"""


@pytest.fixture(scope="module", params=[*sorted(HERE.glob("*/tgx.h")), NOW], ids=lambda p: p.parent.name)
def library(request, tmp_path_factory):
    """The library, as the plugin's setup.py makes it, of one header."""
    folder = tmp_path_factory.mktemp("zig")
    env = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder / "cache")}
    zig = [sys.executable, "-m", "ziglang"]
    words = [*zig, "translate-c", "-DTGX_NO_TABLE", "-lc", str(request.param)]
    (folder / "tgx.zig").write_bytes(subprocess.run(words, check=True, stdout=subprocess.PIPE, env=env).stdout)
    (folder / SOURCE.name).write_text(SOURCE.read_text())
    words = [*zig, "build-lib", "-dynamic", "-O", "ReleaseFast", "-lc", SOURCE.name, "-femit-bin=waves.so"]
    subprocess.run(words, check=True, cwd=folder, env=env)
    return folder / "waves.so"


@pytest.mark.parametrize("core", ["", "1.0"], ids=["this core", "a core of 1.0"])
def test_the_plugin_in_zig_runs(library, core):
    env = {**os.environ, "TINYGRAD_EXT_ABI_PRETEND": core, "TINYGRAD_EXT_PLUGINS": "none"}
    subprocess.run([sys.executable, "-W", "error", "-c", CHECK, str(library)], env=env, check=True)
