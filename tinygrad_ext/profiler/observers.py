"""Names of PyTorch's recorders that are not here: they exist, so that programs can be imported, and say so at use."""

from tinygrad_ext.core.call.boundary import boundary


@boundary
def kineto_available():
    """False: profiles are recorded without Kineto.

    >>> import tinygrad_ext as tg
    >>> tg.profiler.kineto_available()
    False
    """
    return False


@boundary
class ExecutionTraceObserver:
    """Would write execution traces, a format of PyTorch's own: using it raises NotImplementedError."""

    is_registered = is_running = False

    def _refuse(self, *args, **kwargs):
        raise NotImplementedError(
            "ExecutionTraceObserver: execution traces are PyTorch's own format. profile(...).export_chrome_trace tells "
            "what ran, in which order, with shapes; jit.trace writes a program down"
        )

    register_callback = start = get_output_file_path = _refuse

    def stop(self):
        """Nothing has started."""

    unregister_callback = cleanup = stop
