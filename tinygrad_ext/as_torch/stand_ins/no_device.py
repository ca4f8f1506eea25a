"""What a program asks about a kind of device that is not here, and does for it, which is nothing."""


def functions(kind):
    """{name: function} of a module such as torch.mps."""

    def is_available():
        """False."""
        return False

    def is_initialized():
        """False."""
        return False

    def device_count():
        """0."""
        return 0

    def synchronize(device=None):
        """Do nothing: nothing runs there."""

    def empty_cache():
        """Do nothing: nothing is kept there."""

    def manual_seed(seed):
        """Do nothing: nobody draws there."""

    def current_device():
        """Refused with RuntimeError."""
        raise RuntimeError(f"torch.{kind}.current_device: there is no {kind} here; tensors live on the cpu")

    def current_allocated_memory():
        """0."""
        return 0

    found = (is_available, is_initialized, device_count, synchronize, empty_cache, manual_seed, current_device)
    return {f.__name__: f for f in (*found, current_allocated_memory)} | {
        "manual_seed_all": manual_seed,
        "memory_allocated": current_allocated_memory,
        "driver_allocated_memory": current_allocated_memory,
    }
