"""torch._inductor.config: settings that change nothing."""

coordinate_descent_tuning = fx_graph_cache = epilogue_fusion = freezing = False
