"""SciPy's special functions as ops: `tinygrad_ext.ops.special`, and modules built on them.

Importing this package registers nothing and does not import SciPy; both happen when the namespace is first used.
"""
