"""What code below `jit` asks of the compiler."""


def is_scripting():
    """False; True in compiled code.

    >>> from tinygrad_ext import jit
    >>> jit.is_scripting()
    False
    """
    return False
