"""Ops from compiled libraries that know no Python: see include/tgx.h and docs/compiled_extensions.md."""
