"""Region-of-interest pooling and boxes: `tinygrad_ext.ops.vision` and `tinygrad_ext.nn.plugins.vision`.

Importing this package registers nothing; tinygrad_ext does when something of its namespace is first used.
"""
