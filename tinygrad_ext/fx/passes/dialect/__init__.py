"""Passes for graphs of one kind of calls."""
