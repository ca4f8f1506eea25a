"""The default random generator: seeding it, and saving and restoring its state."""

from contextlib import contextmanager

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.random import Generator, default_generator, initial_seed, manual_seed, seed

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@boundary
def get_rng_state():
    """State of the default generator, as a uint8 tensor for `set_rng_state`.

    >>> import tinygrad_ext as tg
    >>> state = tg.get_rng_state()
    >>> a = tg.rand(3)
    >>> tg.set_rng_state(state)
    >>> bool((tg.rand(3) == a).all())
    True
    """
    return default_generator.get_state()


@boundary
def set_rng_state(new_state):
    """Let the default generator continue from a state that `get_rng_state` gave.

    Raises TypeError for anything but a uint8 tensor, RuntimeError for one that is no state.
    """
    default_generator.set_state(new_state)


@boundary
@contextmanager
def fork_rng(devices=None, enabled=True, device_type="cpu"):
    """Within the `with`, draw as you like: afterwards the default generator stands where it stood.

    ``devices`` and ``device_type`` are there for code written for other devices; the CPU is the only one.
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
