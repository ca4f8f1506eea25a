"""What tensors do in Python: printing, conversion, copying, methods that are no ops, calls of other libraries."""
