"""Recursive filters, in `tinygrad_ext.ops.filters`. What is registered stands in ops.py."""
