"""The compiled parts: two modules of loops, and a library of ops. Everything else stands in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

from tinygrad_ext.utils.cpp_extension import BuildExtension, CExtension

# Products are not contracted to fused multiply-adds: a wheel gives the same bits on every machine.
FLAGS = ["-O3", "-ffp-contract=off", "-fno-trapping-math", "-fno-math-errno"]
MODULES = [
    Extension(f"tgx_vision.{name}", [f"src/tgx_vision/{name}.pyx"], extra_compile_args=FLAGS)
    for name in ("regions", "boxes")
]

LIBRARY = CExtension(
    "tgx_vision._roi_align",
    ["src/tgx_vision/roi_align.c"],
    extra_compile_args=[*FLAGS, "-fvisibility=hidden"],
    depends=["src/tgx_vision/align_loops.h"],
)

setup(
    cmdclass={"build_ext": BuildExtension},
    ext_modules=[
        LIBRARY,
        *cythonize(
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
        ),
    ],
)
