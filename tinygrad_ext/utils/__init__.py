"""Helpers that do not belong to one layer: hooks, data loading."""
