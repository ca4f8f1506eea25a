"""Checks of ops against references, for the package's own tests and for plugin authors.

layouts.py makes the same values in other memory layouts, compare.py compares results, sweep.py runs one op's
samples through one check. tests/test_every_op.py multiplies them out.
"""
