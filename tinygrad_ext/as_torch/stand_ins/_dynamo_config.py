"""torch._dynamo.config: settings that change nothing."""

suppress_errors = verbose = capture_scalar_outputs = False
cache_size_limit = recompile_limit = 8
