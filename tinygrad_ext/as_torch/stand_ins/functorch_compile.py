"""functorch.compile: graphs of forward and backward ahead of time, which are not here under these names."""

from . import absent

_WHY = "there is no compiler of dispatched ops; use jit.trace"
globals().update(
    absent.functions(
        "functorch.compile",
        "aot_function aot_module aot_module_simplified compiled_function compiled_module default_decompositions "
        "default_partition draw_graph make_boxed_compiler make_boxed_func memory_efficient_fusion "
        "min_cut_rematerialization_partition nop ts_compile",
        _WHY,
    )
)
