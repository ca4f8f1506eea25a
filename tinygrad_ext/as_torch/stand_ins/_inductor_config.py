"""torch._inductor.config: settings that change nothing."""

from .settings import patcher

coordinate_descent_tuning = fx_graph_cache = epilogue_fusion = freezing = False
patch = patcher(globals())
