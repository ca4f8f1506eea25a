"""The compiled part: two modules of loops. Everything else stands in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

# Products are not contracted to fused multiply-adds: a wheel gives the same bits on every machine.
FLAGS = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"]
MODULES = [
    Extension(f"tgx_vision.{name}", [f"src/tgx_vision/{name}.pyx"], extra_compile_args=FLAGS)
    for name in ("regions", "boxes")
]

setup(
    ext_modules=cythonize(
        MODULES,
        build_dir="build",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "freethreading_compatible": True,
        },
    )
)
