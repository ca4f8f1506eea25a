"""What is known of a plugin: Plugin (its whole life), PluginInfo and Failure (what users read)."""

import functools
from typing import NamedTuple

from tinygrad_ext.ops.record import Owner
from tinygrad_ext.registry.scope import Scope

# groups of entry points
PLUGINS, OVERRIDES, DEVICES = "tinygrad_ext.plugins", "tinygrad_ext.overrides", "tinygrad_ext.devices"
FOUND, LOADING, ACTIVE, FAILED = "found", "loading", "active", "failed"
DISABLED, INCOMPATIBLE, CONFLICT, SHADOWED = "disabled", "incompatible", "conflict", "shadowed"


def phrase(state):
    """A state as it stands after "is"."""
    return "in conflict" if state == CONFLICT else state


class PluginWarning(UserWarning):
    """A plugin was left out, or a setting about plugins means nothing; the rest goes on."""


class PluginError(RuntimeError):
    """What was asked of a plugin cannot be done."""


class Incompatible(PluginError):
    """The plugin was written for another version of the plugin API."""


class Failure(NamedTuple):
    """Why a plugin is not active.

    hook: "import" or the hook that raised. line: "file:line: text", the last line in the plugin's own code.
    """

    plugin: str
    distribution: str
    version: str
    entry_point: str
    hook: str
    error: str
    line: str
    traceback: str
    milliseconds: float

    def __str__(self):
        where = f", at {self.line}" if self.line else ""
        hook = "while it was imported" if self.hook == "import" else f"in its hook {self.hook}"
        return f"{self.error} ({hook}{where})"


class PluginInfo(NamedTuple):
    """What `plugins.list()` tells of a plugin.

    state: found (not used yet), loading, active, failed, disabled, incompatible, conflict or shadowed.
    reason: why it is not active, else "". milliseconds: what its import and hooks took.
    """

    name: str
    distribution: str
    version: str
    state: str
    reason: str
    entry_points: tuple
    namespaces: tuple
    prefixes: tuple
    location: str
    ops: tuple
    modules: tuple
    overrides: tuple
    devices: tuple
    dtypes: tuple
    passes: tuple
    milliseconds: float


class Plugin:
    """One module or object with hooks, and what became of it."""

    def __init__(self, name, value, distribution, version, location="", target=None, tops=None):
        self.name, self.value, self.location, self.target = name, value, location, target
        self.namespaces, self.prefixes, self.devices, self.entry_points = [], [], [], []
        self.owner = Owner(distribution, version or None)
        self._tops = tops
        self.problem = None  # (state, reason) that no setting changes
        self.reset()

    def reset(self):
        """As if never loaded."""
        self.state, self.thread, self.failure, self.seconds = FOUND, None, None, 0.0
        self.stage, self.before = "import", set()  # before: its modules that were there already
        self.scope = Scope(self.owner, self.namespaces)

    def declare(self, group, name):
        """Note an entry point of the plugin."""
        self.entry_points.append(f"{group}: {name} = {self.value}")
        if group == OVERRIDES:
            self.prefixes.append(name)
        elif group == DEVICES:
            self.devices.append(name)
        elif name.partition(".")[0] not in self.namespaces:
            self.namespaces.append(name.partition(".")[0])
        self.scope = Scope(self.owner, self.namespaces)

    @property
    def module(self):
        """Name of the module the entry point leads to."""
        return self.value.partition(":")[0].strip()

    @functools.cached_property
    def packages(self):
        """Packages and modules that came with the plugin, and may leave with it.

        A distribution's top-level ones; of a plugin that a program registers only those beside its module, since the
        program has others below the same name.
        """
        listed = self._tops() if self._tops else set()
        return (listed or {self.module.rpartition(".")[0] or self.module}) - {"tinygrad_ext", "__main__"}

    def owns(self, module):
        """Whether a module, by its dotted name, came with the plugin."""
        return any(module == own or module.startswith(own + ".") for own in self.packages)

    @property
    def title(self):
        """How messages name it."""
        return f"plugin '{self.name}' of {self.owner}"

    def __repr__(self):
        return f"<{self.title}: {self.state}>"
