"""`plugins check NAME`: the conformance battery on all that a plugin brings."""

from tinygrad_ext.testing import check_plugin


def run(name, *, as_json=False, only=(), op=None):
    """Print the report on a plugin; returns the exit status: 0 all is well, 1 a check failed.

    Args:
        name: of the plugin or its distribution. as_json: print JSON. only: name of a check, or several. op: one op or
            module of the plugin.
    """
    report = check_plugin(name, only=(only,) if isinstance(only, str) else tuple(only or ()), op=op)
    print(report.to_json() if as_json else report)
    return report.exit_status
