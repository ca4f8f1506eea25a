"""Histories: how they are written, and the pass back through them."""
