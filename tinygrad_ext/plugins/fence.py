"""What surrounds the load of a plugin: sys.modules as before, and words about what went wrong."""

import linecache
import sys
import time
import traceback
import warnings

from . import table
from .child import cut
from .model import Failure, Incompatible, PluginWarning

STATEMENT = 12  # lines of a statement that are shown
LONGEST = 2_000  # characters of the text of a plugin's exception that are passed on

# modules that plugins hold; others' loads leave them alone
_claimed = {}  # id of a plugin -> set of names


def claim(plugin, before):
    """Note the modules that came with a loaded plugin."""
    _claimed[id(plugin)] = {m for m in list(sys.modules) if m not in before and plugin.owns(m)}


def release(plugin):
    """Note that a plugin holds no modules any more."""
    _claimed.pop(id(plugin), None)


def forget_modules(plugin, before=()):
    """Take the plugin's own modules out of sys.modules, but for those in `before` and those other plugins hold."""
    release(plugin)
    kept = set(before)
    for names in _claimed.values():
        for name in names:
            kept.update(".".join(name.split(".")[: k + 1]) for k in range(name.count(".") + 1))
    for name in [m for m in list(sys.modules) if m not in kept and plugin.owns(m)]:
        module = sys.modules.pop(name)
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and vars(sys.modules[parent]).get(child) is module:
            delattr(sys.modules[parent], child)


def failure_of(plugin, error, seconds):
    """The Failure of an exception that left the plugin's import or hook."""
    return Failure(
        plugin.name,
        plugin.owner.distribution,
        plugin.owner.version or "",
        plugin.entry_points[0] if plugin.entry_points else plugin.value,
        plugin.stage,
        _words(error),
        _last_line(plugin, error),
        cut("".join(traceback.format_exception(type(error), error, error.__traceback__)), 10 * LONGEST),
        seconds * 1e3,
    )


def warn(plugin, error):
    """One warning about a plugin that is left out."""
    failure = plugin.failure
    came_from = "".join(f"The error came from {other.title}. " for other in culprits(plugin, error)[:1])
    warnings.warn(
        f"{plugin.title} ({failure.entry_point}) is left out: {failure}. {came_from}All it had "
        f"registered is undone. Way out: {way_out(plugin, error)}. tinygrad_ext.plugins.failed() holds the traceback; "
        "TINYGRAD_EXT_STRICT_PLUGINS=1 raises it",
        PluginWarning,
        stacklevel=_user_level(),
    )


def _user_level():
    """Frames between `warn` and the code outside of the package, for warnings.warn."""
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and _internal(frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    return level


def _internal(module):
    return module.partition(".")[0] in ("tinygrad_ext", "importlib") or module == "<frozen importlib._bootstrap>"


def _words(error):
    text = f"{type(error).__name__}: {_text(error)}"
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    seen = {id(error)}
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        text += f", caused by {type(cause).__name__}: {_text(cause)}"
        cause = cause.__cause__
    return text


def _text(error):
    try:
        return cut(str(error), LONGEST) or "no text"
    except Exception:  # a plugin's own exception may fail to print itself
        return "an exception that cannot be printed"


def _frames(error):
    """(module, file, line) of an exception, outermost first, through its causes."""
    found, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        found += [
            (f.f_globals.get("__name__") or "", f.f_code.co_filename, line)
            for f, line in traceback.walk_tb(error.__traceback__)
        ]
        if isinstance(error, SyntaxError) and error.filename and error.lineno:
            found.append(("<syntax>", error.filename, error.lineno))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def _last_line(plugin, error):
    """'file:line: text' of the last frame in the plugin's own code, "" when there is none."""
    for module, file, line in reversed(_frames(error)):
        if plugin.owns(module) or module == "<syntax>":
            return place(file, line)
    return ""


def place(file, line):
    """'file:line: text', the text being the statement that begins there, on one line."""
    text, found = "", linecache.getline(file, line).strip()
    for number in range(line + 1, line + STATEMENT):
        text += found
        if not found or _is_whole(text):
            break
        text += "" if text.endswith(("(", "[", "{")) else " "
        found = linecache.getline(file, number).strip()
        text = text.rstrip() if found.startswith((")", "]", "}")) else text
    return f"{file}:{line}" + (f": {cut(text.strip(), LONGEST)}" if text.strip() else "")


def _is_whole(text):
    """Whether no bracket is left open; those in strings count too, which does no harm to a message."""
    return all(text.count(a) <= text.count(b) for a, b in ("()", "[]", "{}")) and not text.endswith("\\")


def culprits(plugin, error):
    """Other plugins in whose code the error arose, innermost first."""
    modules = dict.fromkeys(module for module, _, _ in reversed(_frames(error)) if not plugin.owns(module))
    found = [p for module in modules for p in table.known() if p is not plugin and p.owns(module)]
    return list(dict.fromkeys(found))


def way_out(plugin, error):
    """What a user can do about a plugin that failed with an exception."""
    distribution = plugin.owner.distribution
    if isinstance(error, ModuleNotFoundError) and error.name:
        entered = f"{plugin.module}.".startswith(f"{error.name}.")  # the entry point itself leads nowhere
        if plugin.owns(error.name) and not (entered and "." in error.name):
            return (
                f"its files are gone: pip install --force-reinstall {distribution}, or pip uninstall it; or its entry "
                f"point misspells the module '{plugin.module}'"
            )
        if entered:
            return (
                f"the entry point leads to '{plugin.module}', and {distribution} has no such module: its author "
                f"corrects the name in pyproject.toml and installs it again; else "
                f"TINYGRAD_EXT_DISABLE_PLUGINS={plugin.name}"
            )
        return f"install the module '{error.name}' that it needs, or TINYGRAD_EXT_DISABLE_PLUGINS={plugin.name}"
    if isinstance(error, Incompatible):
        return f"pip install -U {distribution}, or TINYGRAD_EXT_DISABLE_PLUGINS={plugin.name}"
    return f"pip install -U {distribution}, tell its author, or TINYGRAD_EXT_DISABLE_PLUGINS={plugin.name}"


now = time.perf_counter
