"""What the processor has."""

from tinygrad_ext.core.loops.loop_tables import instruction_set

__all__ = ["get_cpu_capability"]


def get_cpu_capability():
    """The instructions in use, by PyTorch's words: "AVX512", "AVX2", or "DEFAULT" for what every processor has."""
    return {"avx512": "AVX512", "avx2": "AVX2"}.get(instruction_set(), "DEFAULT")
