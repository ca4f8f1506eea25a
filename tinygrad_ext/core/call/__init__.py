"""The way of a call: binding, overrides, levels, the kernel's caller, and what is no op but is called."""
