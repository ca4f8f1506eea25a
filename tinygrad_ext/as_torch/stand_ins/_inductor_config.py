"""torch._inductor.config: settings that change nothing."""

from types import SimpleNamespace

from .settings import patcher

# groups of settings, whatever these are
triton, cpp, cuda, rocm, aot_inductor = (SimpleNamespace() for _ in range(5))
coordinate_descent_tuning = fx_graph_cache = epilogue_fusion = freezing = False
patch = patcher(globals())
