"""Times against PyTorch and NumPy, held against budgets: `python -m benchmarks`."""
