"""torch.__config__: what the library was built with."""

import tinygrad_ext as _tg


def show():
    """A text about the library and what it runs on."""
    return str(_tg.show_config())


def parallel_info():
    """How many threads there are."""
    return f"at::get_num_threads() : {_tg.get_num_threads()}"
