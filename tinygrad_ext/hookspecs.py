"""The hooks a plugin may fill in: the whole surface on one page.

A plugin is a module (or an object) that an entry point of the group ``tinygrad_ext.plugins`` names; the entry point's
name is the plugin's namespace. It marks its implementations with ``tinygrad_ext.hookimpl``. Each hook is called once,
when the plugin is loaded, and the calls of one load are a transaction: an exception undoes all of them.
``requires_api = ">=1,<2"`` in the module says which versions of this page the plugin was written for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from tinygrad_ext.registry.device_registrar import DeviceRegistrar
    from tinygrad_ext.registry.module_registrar import ModuleRegistrar
    from tinygrad_ext.registry.op_registrar import OpRegistrar
    from tinygrad_ext.registry.override_registrar import OverrideRegistrar
    from tinygrad_ext.registry.pass_registrar import PassRegistrar
    from tinygrad_ext.registry.profiler_registrar import ProfilerRegistrar

API_VERSION = (1, 5)  # major: what is here changed its meaning; minor: something was added

hookspec = pluggy.HookspecMarker("tinygrad_ext")
hookimpl = pluggy.HookimplMarker("tinygrad_ext")


@hookspec
def tgx_register_ops(register: OpRegistrar) -> None:
    """Add ops to your namespace: they become ``tinygrad_ext.ops.<namespace>.<name>``.

    Called once, the first time something in the plugin's namespace is used. ``register(schema, **fields)`` takes the
    same fields as a built-in record, except ``operator=``, which the package's own build serves. ``scalar=`` needs
    ``register.loops(path)`` before, with what ``utils.cpp_extension.PointwiseExtension`` built from the same records.
    ``register.library(path, facts)`` adds the ops of a library compiled with ``tgx.h``, ``register.dtype(name,
    values=...)`` a dtype of one or two bytes. The schema's namespace must be
    one that the distribution declares. Raising here undoes everything the plugin registered.

        from tinygrad_ext import hookimpl

        @hookimpl
        def tgx_register_ops(register):
            register("demo::double(Tensor self) -> Tensor", compose=lambda self: self + self)
    """


@hookspec
def tgx_register_modules(register: ModuleRegistrar) -> None:
    """Add nn modules: they become ``nn.plugins.<namespace>.<Name>`` and ``nn.create("namespace::Name", **config)``.

    Called once, after tgx_register_ops. ``register("namespace::Name", cls, samples=None)`` takes a subclass of
    nn.Module; state dicts of models that hold one name the plugin and its version. ``samples`` says what
    ``plugins check`` makes it with and feeds it: a function that yields ``Sample(*inputs, **config)``.

        from tinygrad_ext import hookimpl, nn

        class Double(nn.Module):
            def forward(self, input):
                return input + input

        @hookimpl
        def tgx_register_modules(register):
            register("demo::Double", Double)
    """


@hookspec
def tgx_register_overrides(register: OverrideRegistrar) -> None:
    """Handle calls whose arguments are of a type you do not own, such as a SciPy sparse array.

    Called once, when a value of a declared type first reaches an op: the name of an entry point in the group
    ``tinygrad_ext.overrides`` is the prefix of the type's module. ``register(type_or_prefix, handler)``; the handler
    is called as ``handler(func, types, args, kwargs)``, like ``__torch_function__``, and returns NotImplemented for
    what it does not serve: the call then goes on as if the plugin were not there.

        from tinygrad_ext import hookimpl

        def handle(func, types, args, kwargs):
            return NotImplemented

        @hookimpl
        def tgx_register_overrides(register):
            register("scipy.sparse", handle)
    """


@hookspec
def tgx_register_devices(register: DeviceRegistrar) -> None:
    """Bring a device on which tensors can be, with kernels for a handful of ops or many.

    Called once, when ``device("<name>")`` is first asked for: the name of an entry point in the group
    ``tinygrad_ext.devices`` is the device's. ``register(name, memory)``; the memory allocates, reads and writes bytes.
    Kernels for it come by ``library.impl("aten::add.Tensor", name, function)``; an op without one says so.

        from tinygrad_ext import hookimpl

        class Memory:
            blocks = {}

            def allocate(self, nbytes):
                address = 4096 + sum(map(len, self.blocks.values()))
                block = self.blocks[address] = bytearray(nbytes)
                return address, block

            def read(self, address, into):
                start = max(a for a in self.blocks if a <= address)
                into[:] = memoryview(self.blocks[start])[address - start :][: len(into)]

            def write(self, address, data):
                start = max(a for a in self.blocks if a <= address)
                self.blocks[start][address - start : address - start + len(data)] = data

        @hookimpl
        def tgx_register_devices(register):
            register("demo", Memory())
    """


@hookspec
def tgx_register_passes(register: PassRegistrar) -> None:
    """Add passes over captured graphs, such as one that puts your fused op in the place of a pattern.

    Called once, after tgx_register_ops, when the plugin is loaded; ``graph.passes.optimize`` runs the passes from then
    on, before the package's own. ``register("namespace::name", pass)``; a pass has ``run(graph)``, which changes the
    graph and keeps its results to the bit; the graph is checked after it.

        from tinygrad_ext import hookimpl
        from tinygrad_ext.graph import passes

        class Quiet(passes.Pass):
            def run(self, graph):
                return graph

        @hookimpl
        def tgx_register_passes(register):
            register("demo::quiet", Quiet())
    """


@hookspec
def tgx_register_profilers(register: ProfilerRegistrar) -> None:
    """Receive what profiles record, such as to keep it in a database or to show it elsewhere.

    Called once, when the plugin is loaded: at the latest when ``profiler.receiver("namespace::name")`` is asked for.
    ``register("namespace::name", receive)``; ``receive(events, *args, **kwargs)`` gets the events of each complete
    recording, and what the user has given to ``receiver`` besides the name. It runs where the recording ends, and what
    it raises goes to the program.

        from tinygrad_ext import hookimpl

        def count(events, into):
            into.append(len(events))

        @hookimpl
        def tgx_register_profilers(register):
            register("demo::count", count)
    """
