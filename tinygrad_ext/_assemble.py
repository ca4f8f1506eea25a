"""Brings the records of the built-in families into the package's namespace, and fills the core's slots."""

import importlib
import importlib.util
import os

from tinygrad_ext import ops, overrides, registry
from tinygrad_ext.autograd.engine import backward
from tinygrad_ext.autograd.shown import Set
from tinygrad_ext.core.call import boundary, later, places
from tinygrad_ext.core.call.type_names import name_types
from tinygrad_ext.core.data import slots
from tinygrad_ext.core.data.dtype import set_device_finder, set_dtype_finder
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.grad import cuts, methods
from tinygrad_ext.core.grad.hooks import add_hook
from tinygrad_ext.errors import no_attribute, stand_in  # noqa: F401 - both for the package's own __getattr__
from tinygrad_ext.native import index
from tinygrad_ext.ops import FAMILIES, NATIVE
from tinygrad_ext.ops.record import RECORDS
from tinygrad_ext.overrides import dispatched
from tinygrad_ext.registry import foreign, graph_slots, op_registrar
from tinygrad_ext.tensor import copying, legacy
from tinygrad_ext.tensor import methods as python_methods

later.set_modules(
    {
        "autocast": "tinygrad_ext.amp.autocast_mode",
        "autocast state": "tinygrad_ext.amp.state",
        "extensions": "tinygrad_ext.extension.loading",
        "opcheck": "tinygrad_ext.testing.opcheck",
        "plugins": "tinygrad_ext.plugins",
        "signatures": "tinygrad_ext.describe.signatures",
        "vmap": "tinygrad_ext.func.vmap",
        "compile": "tinygrad_ext.jit.compiling",
        "dispatch modes": "tinygrad_ext.overrides.dispatched",
        "compiled by a function": "tinygrad_ext.fx.compiled",
        "forward mode": "tinygrad_ext.func.forward",
        "module hooks": "tinygrad_ext.nn.hooks",
        "profiler recording": "tinygrad_ext.profiler.recording",
        "profiler": "tinygrad_ext.profiler.legacy",
        "sparse": "tinygrad_ext.sparse.handlers",
        "sparse tensors": "tinygrad_ext.sparse",
    }
)


def publish(package, folder):
    """Register the families and put their functions at the top of the package."""
    for name in ("pointwise", "kernel_call", "rows"):  # fill slots of the dispatcher
        importlib.import_module("tinygrad_ext.core.call." + name)
    for name in FAMILIES:
        importlib.import_module("tinygrad_ext.ops." + name)
    for name in NATIVE:
        importlib.import_module("tinygrad_ext.native." + name)
    op_registrar.register_builtin(RECORDS)
    index.bind_ops(registry.ops)
    ops.set_namespaces(registry.namespace, registry.namespace_names)
    for name in FAMILIES:
        delattr(ops, name)  # `ops.special` is a namespace of ops; its records need no second way in
    names = vars(package)
    for path, fn in registry.functions.items():
        if "." not in path:
            names[path] = fn
    _fill_slots(folder)
    name_types("tinygrad_ext")


def _fill_slots(folder):
    slots.set_slot("grad_fn", methods.grad_fn)
    slots.set_slot("cut", cuts.note_cut_of)
    places.set_package_folder(folder + "/")
    boundary.set_own_folder(folder + "/")
    boundary.set_full_tracebacks(os.environ.get("TINYGRAD_EXT_TRACEBACKS", "") == "full")
    slots.set_slot("handle", add_hook)
    graph_slots.fill()
    slots.set_slot("backward", backward)
    slots.set_slot("set_from_history", Set.apply)
    for name in (
        "register_hook",
        "register_post_accumulate_grad_hook",
        "detach_",
        "backward",
        "retain_grad",
    ):
        setattr(Tensor, name, getattr(methods, name))
    python_methods.install()
    copying.fill_slots()
    legacy.fill_slots()
    overrides.install()
    overrides.defaults.install()
    dispatched.install()
    foreign.set_loader(_load_for_type)
    set_device_finder(_load_for_device)
    set_dtype_finder(_load_for_owner)


def _load_for_device(name):
    return later.later("plugins").load_for_device(name)


def _load_for_owner(owner):
    later.later("plugins").load_for_owner(owner)


def _load_for_type(t):
    later.later("plugins").load_for_type(t)


def unknown_name(name, known):
    """The error for an attribute the package does not have; an installed plugin may declare one of that name."""
    if importlib.util.find_spec("tinygrad_ext." + name) is not None:  # an import asks before it loads the module
        return AttributeError(f"module 'tinygrad_ext' has no attribute '{name}'")
    hint = ""
    if not name.startswith("_"):
        hint = later.later("plugins").unknown_attribute(name)
    return no_attribute("tinygrad_ext", name, known, hint)
