"""torch._dynamo.config: settings that change nothing."""

from .settings import patcher

suppress_errors = verbose = capture_scalar_outputs = compiled_autograd = False
fake_tensor_cache_enabled = fake_tensor_cache_crosscheck_enabled = False
cache_size_limit = recompile_limit = 8
patch = patcher(globals())
