"""What the modules of settings share."""

import contextlib


def patcher(settings):
    """The function `patch` of a module of settings: values for a block or a function."""

    @contextlib.contextmanager
    def patch(arg1=None, arg2=None, **kwargs):
        """Settings of a dict, of a name and a value, or by keywords, which hold in a block or a function."""
        changes = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs}
        before = {name: settings[name] for name in changes if name in settings}
        settings.update(changes)
        try:
            yield
        finally:
            for name in changes:
                del settings[name]
            settings.update(before)

    return patch
