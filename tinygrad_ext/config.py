"""What this build runs with, and what its memory holds."""

import tinygrad_ext as tg
from tinygrad_ext.core.call.boundary import boundary, full_tracebacks, set_full_tracebacks
from tinygrad_ext.core.data.storage import empty_cache, memory_stats, reset_peak_memory_stats
from tinygrad_ext.core.loops.blas import blas_info
from tinygrad_ext.core.loops.loop_tables import instruction_set

__all__ = [
    "empty_cache",
    "full_tracebacks",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_full_tracebacks",
    "show_config",
]


@boundary
def show_config():
    """Text that names version, instruction set, BLAS library and kernels, threads, and memory.

    >>> import tinygrad_ext as tg
    >>> "threads" in tg.show_config()
    True
    """
    return "\n".join(f"{name}: {value}" for name, value in _facts().items()) + "\n"


def _facts():
    import platform

    blas = blas_info()
    memory = memory_stats()
    return {
        "tinygrad_ext": tg.__version__,
        "python": f"{platform.python_version()} on {platform.machine()} {platform.system()}",
        "instruction set": instruction_set(),
        "BLAS": ", ".join(f"{name} {value}" for name, value in blas.items()),
        "threads": tg.get_num_threads(),
        "allocator": f"64-byte aligned blocks, freed ones kept for reuse: {memory['allocated']} bytes in use, peak "
        f"{memory['peak']}, "
        f"{memory['cached']} kept",
    }
