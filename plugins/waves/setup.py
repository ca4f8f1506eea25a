"""The library: `zig translate-c` makes a module of the header tgx.h, and Zig compiles it and the ops to one file.

Everything else stands in pyproject.toml.
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup

from tinygrad_ext.utils.cpp_extension import BuildExtension, include_paths

SOURCE = Path(__file__).parent / "src" / "tgx_waves" / "waves.zig"


class ZigBuild(BuildExtension):
    """Calls Zig, which comes as a package of Python's."""

    def build_extension(self, ext):
        library = Path(self.get_ext_fullpath(ext.name)).absolute()
        folder = Path(self.build_temp).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        library.parent.mkdir(parents=True, exist_ok=True)
        zig = [sys.executable, "-m", "ziglang"]
        env = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(folder / "cache")}
        header = Path(include_paths()[0]) / "tgx.h"
        words = [*zig, "translate-c", "-DTGX_NO_TABLE", "-lc", str(header)]
        text = subprocess.run(words, check=True, stdout=subprocess.PIPE, env=env).stdout
        (folder / "tgx.zig").write_bytes(text)
        (folder / SOURCE.name).write_text(SOURCE.read_text())
        words = [*zig, "build-lib", "-dynamic", "-O", "ReleaseFast", "-lc", SOURCE.name, f"-femit-bin={library}"]
        subprocess.run(words, check=True, cwd=folder, env=env)


library = Extension("tgx_waves._waves", [str(SOURCE.relative_to(Path(__file__).parent))])
library.of_table = True  # a library that knows no Python: _waves.so, for every version of it
setup(cmdclass={"build_ext": ZigBuild}, ext_modules=[library])
