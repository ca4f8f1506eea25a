"""A triangular wave, in `tinygrad_ext.ops.waves`. What is registered stands in ops.py."""
