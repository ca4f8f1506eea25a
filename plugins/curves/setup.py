"""The loops of the ops; everything else stands in pyproject.toml."""

from setuptools import setup

from tinygrad_ext.utils.cpp_extension import BuildExtension, PointwiseExtension

loops = PointwiseExtension("tgx_curves._loops", ["src/tgx_curves/ops.py"])
setup(cmdclass={"build_ext": BuildExtension}, ext_modules=[loops])
