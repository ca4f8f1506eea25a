"""Ways to fx graphs other than `symbolic_trace`."""
