"""Modules of PyTorch of which libraries import a few names: what cannot be had fails when it is used."""
