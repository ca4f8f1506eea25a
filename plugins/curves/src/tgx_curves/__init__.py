"""Pointwise ops, in `tinygrad_ext.ops.curves`. What is registered stands in ops.py."""
