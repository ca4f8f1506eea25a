"""A fused gate, in `tinygrad_ext.ops.gates`. What is registered stands in ops.py."""
