"""Runs the checks on an op, a module, or all that a plugin brings."""

from tinygrad_ext import plugins, registry
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.nn.plugins import module_class
from tinygrad_ext.testing.battery.check import MODULE_CHECKS, OP_CHECKS, run_check
from tinygrad_ext.testing.battery.fold import fold
from tinygrad_ext.testing.battery.handlers import HANDLER_CHECKS, HandlerSubject
from tinygrad_ext.testing.battery.loading import PLUGIN_CHECKS, PluginSubject
from tinygrad_ext.testing.battery.modules import ModuleSubject
from tinygrad_ext.testing.battery.result import Report
from tinygrad_ext.testing.battery.subject import OpSubject

TABLES = {"op": OP_CHECKS, "module": MODULE_CHECKS, "handler": HANDLER_CHECKS, "plugin": PLUGIN_CHECKS}


def check_names():
    """The names of all checks, in their order."""
    return list(dict.fromkeys(name for table in TABLES.values() for name in table))


def ops_of(op):
    """The ops of the registry that a callable of `ops`, an Op or a name such as "vision::nms" stands for.

    Raises LookupError for a name that is not known, TypeError for what is no op.
    """
    if isinstance(op, str):
        return registry.find(op)
    for found in (op, getattr(op, "_opoverload", None), getattr(op, "op", None)):
        if hasattr(found, "candidates"):
            return list(found.candidates)
        if hasattr(found, "schema") and hasattr(found, "record"):
            return [found]
    raise TypeError(f"expected an op, such as tinygrad_ext.ops.vision.nms or 'vision::nms', got {op!r}")


@boundary
def check_op(op, *, only=()):
    """Run the battery on an op, built-in or not.

    Args:
        op: a callable of `tinygrad_ext.ops`, a function or method of the package, or a name, "vision::nms".
        only: names of checks; all of them unless given.

    Returns a Report. Raises LookupError for an unknown op or check.

    >>> import tinygrad_ext as tg
    >>> from tinygrad_ext.testing import check_op
    >>> check_op(tg.exp, only=["schema", "mutation", "derivative"]).counts
    {'passed': 3, 'failed': 0, 'skipped': 0}
    """
    found = ops_of(op)
    return _report(found[0].name, str(found[0].record.owner), map(OpSubject, found), only)


@boundary
def check_module(name, *, only=()):
    """Run the battery on an nn module, by its name "vision::RoIAlign". Returns a Report; LookupError as `check_op`."""
    try:
        module_class(name)
    except AttributeError as error:
        raise LookupError(str(error)) from None
    subject = ModuleSubject(name)
    return _report(name, str(subject.owner), [subject], only)


@boundary
def check_plugin(name, *, only=(), op=None):
    """Run the battery on all ops, modules and handlers of a plugin, and on the plugin itself.

    Args:
        name: the plugin's name, or its distribution's.
        only: names of checks; all of them unless given.
        op: one op or module of it, "nms", "vision::nms" or "RoIAlign"; the plugin itself is not checked then.

    Returns a Report. Raises PluginError when there is no such plugin or it cannot be loaded, LookupError for an op or
    check that is not there.
    """
    plugins.load(name)
    info = plugins.info(name)
    return _report(info.name, f"{info.distribution} {info.version}".strip(), subjects_of(info, op), only)


def subjects_of(info, op=None):
    """The subjects of a loaded plugin, by its PluginInfo: itself, its ops, modules and handlers of foreign types.

    op: as in `check_plugin`.
    """
    subjects = [*(OpSubject(registry.ops[n]) for n in info.ops), *(ModuleSubject(n) for n in info.modules)]
    if op is None:
        return [PluginSubject(info), *subjects, *map(HandlerSubject, info.overrides)]
    spellings = lambda s: {s.name, s.name.partition("::")[2], s.name.partition("::")[2].partition(".")[0]}
    found = [s for s in subjects if op in spellings(s)]
    if not found:
        names = ", ".join(s.name for s in subjects) or "nothing"
        raise LookupError(f"plugin '{info.name}' has no op or module '{op}'; it has {names}")
    return found


def checks_of(subject, only=()):
    """The checks for a subject, in their order. LookupError for a name that is none."""
    unknown = sorted(set(only) - set(check_names()))
    if unknown:
        raise LookupError(f"there is no check '{unknown[0]}'; there are {', '.join(check_names())}")
    return [c for c in TABLES[subject.kind].values() if not only or c.name in only]


def _report(name, owner, subjects, only):
    return Report(name, owner, [result for s in subjects for result in _run(s, checks_of(s, only))])


def _run(subject, checks):
    results = [run_check(c, subject) for c in checks]
    fold(subject, checks, results)
    return results
