"""Functions that run in a mode: what a mode makes of the function it decorates."""

import functools


def decorated(mode, fn):
    """fn in the mode, entered anew (`mode.clone()`) for each call; of a generator function for each step."""
    if isinstance(fn, type):
        import warnings

        warnings.warn(
            f"Decorating classes is deprecated: {type(mode).__name__} around {fn.__name__} is on while an instance is "
            "made, and not in its methods. Decorate functions or methods.",
            FutureWarning,
            stacklevel=3,
        )
    from inspect import isgeneratorfunction  # lazy: it costs an eighth of the package's import

    if isgeneratorfunction(fn):
        return _generator(mode, fn)

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        with mode.clone():
            return fn(*args, **kwargs)

    return wrapped


def _generator(mode, fn):
    """A generator function whose body runs in the mode, and whose consumer does not."""

    @functools.wraps(fn)
    def wrapped(*args, **kwargs):
        generator = fn(*args, **kwargs)
        resume = functools.partial(generator.send, None)
        try:
            while True:
                with mode.clone():
                    value = resume()
                try:
                    resume = functools.partial(generator.send, (yield value))
                except GeneratorExit:
                    with mode.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)
        except StopIteration as stop:
            return stop.value

    return wrapped
