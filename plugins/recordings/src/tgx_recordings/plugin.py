"""The hook: what tinygrad_ext calls when `recordings::sqlite` is first asked for."""

from tinygrad_ext import hookimpl

requires_api = ">=1.4,<2"


@hookimpl
def tgx_register_profilers(register):
    from tgx_recordings import database

    register("recordings::sqlite", database.write)
