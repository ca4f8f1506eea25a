"""The library; everything else stands in pyproject.toml."""

from setuptools import setup

from tinygrad_ext.utils.cpp_extension import BuildExtension, CppExtension

# Products are not contracted to fused multiply-adds: a wheel gives the same bits on every machine.
library = CppExtension(
    "tgx_gates._gates",
    ["src/tgx_gates/gates.cpp"],
    extra_compile_args=["-std=c++11", "-O3", "-ffp-contract=off", "-fvisibility=hidden"],
)
setup(cmdclass={"build_ext": BuildExtension}, ext_modules=[library])
