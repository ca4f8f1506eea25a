"""The compiled module; everything else stands in pyproject.toml."""

from Cython.Build import cythonize
from setuptools import Extension, setup

from tinygrad_ext.utils.cpp_extension import include_paths

# Products are not contracted to fused multiply-adds: a wheel gives the same bits on every machine.
flags = ["-O3", "-ffp-contract=off"]
module = Extension(
    "tgx_filters._kernels", ["src/tgx_filters/_kernels.pyx"], include_dirs=include_paths(), extra_compile_args=flags
)
setup(ext_modules=cythonize([module], include_path=include_paths(), build_dir="build/cython"))
