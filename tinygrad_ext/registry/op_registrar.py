"""The one way into the tables of ops.

`OpRegistrar` turns records into callables for the built-in families as for a plugin or a program:

    from tinygrad_ext.registry import scope
    from tinygrad_ext.registry.op_registrar import OpRegistrar

    register = OpRegistrar(scope.current())                 # the plugin being loaded, or the running program
    op = register("demo::halve(Tensor self) -> Tensor", compose=lambda self: self * 0.5)
    register.finish()                                       # once after the last: rules given as text find their op

`register(schema, **fields)` takes the fields of a record (ops/record.py), `register.add(record)` a finished one. What
is registered belongs to the scope's owner, and `scope.undo()` takes every trace of it back (`scope.undo(mark)`: what
came after `mark = scope.mark()`). An op that is no built-in one stands in `ops.<namespace>`; its in-place form is
`ops.<namespace>.<name>_`, and only variants="function method" makes it a Tensor method too.
"""

import os
import sys
import threading

from tinygrad_ext import registry
from tinygrad_ext.core.call import operators
from tinygrad_ext.core.call.callables import OpFunction, OpMethod
from tinygrad_ext.core.call.later import later
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.core.loops import loop_tables
from tinygrad_ext.ops.record import BUILTIN, Record
from tinygrad_ext.ops.schema import Schema
from tinygrad_ext.registry import (
    compiler,
    dtype_registrar,
    functions,
    methods,
    namespaces,
    op_namespace,
    ops,
    prefixes,
    scope,
    variants,
)
from tinygrad_ext.registry.checks import check, check_namespace

_lock = threading.RLock()  # between the check that a name is free and the step that takes it


def lock():
    """The lock to hold while something is registered."""
    return _lock


def _new_lock():
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_lock)  # another thread may have held it


class OpRegistrar:
    """Adds ops in the name of a scope's owner; see the top of this file."""

    def __init__(self, to):
        self.scope = to
        self._waiting = []  # ops with a rule whose text names an op that was not registered yet

    def __call__(self, schema, **fields):
        """Add an op and return it.

        Args:
            schema: "namespace::name(Tensor self, ...) -> Tensor".
            fields: those of a record; exactly one of `kernel`, `compose` and `scalar` (after
                `loops`) says how it is computed.

        Raises RuntimeError for a name that is taken or a namespace that is not the owner's, TypeError for a wrong
        field. The tables are then as before.
        """
        frame = sys._getframe(1)
        return self.add(Record(schema, frame.f_code.co_filename, frame.f_lineno, None, fields))

    def add(self, record):
        """Add the op of a record, and all callables that are derived from it. Returns the op.

        Whatever its author wrote, a record belongs to whoever registers it.
        """
        if self.scope is None:
            raise RuntimeError(f"{record.schema}: `register` is for use inside the hook only, which is over")
        record.owner = self.scope.owner
        schema = Schema.parse(record.schema)
        with _lock:
            check(record, schema, self.scope)
            mark = self.scope.mark()
            try:
                return self._add(record, schema)
            except BaseException:
                self.scope.undo(mark)
                raise

    def library(self, path, facts=None):
        """Add the ops of a compiled extension, all of them or none.

        Args:
            path: of a shared library made with tgx.h.
            facts: name of an op -> fields of its record that C cannot say: samples, reference, errors, ...

        Raises as `ops.load_library` does, and ValueError for facts about an op that is not there.
        """
        if self.scope is None:
            raise RuntimeError(f"{path}: `register` is for use inside the hook only, which is over")
        return later("extensions").load(path, self.scope, facts)

    def loops(self, path):
        """Take in the loops of pointwise ops, built as `utils.cpp_extension.PointwiseExtension`.

        Args:
            path: of the library. After this the records from which it was built are registered, with their scalar=.

        Raises OSError for a file that is no library, ImportError for one that is made for another version, RuntimeError
        for loops of ops in a namespace that is not the owner's; then none is taken in.
        """
        if self.scope is None:
            raise RuntimeError(f"{path}: `register` is for use inside the hook only, which is over")
        rows, formulas, said = loop_tables.read(os.path.realpath(os.fspath(path)))
        for name in rows:
            check_namespace(name, name.partition("::")[0], self.scope)
        with _lock:
            for table, found in (
                (loop_tables.tables, rows),
                (loop_tables.formulas(), formulas),
                (loop_tables.said, said),
            ):
                for key, value in found.items():
                    self.scope.put(table, key, value)

    def dtype(self, name, **facts):
        """Bring a dtype and return it.

        Args:
            name: small letters, digits and _.
            facts: those of `library.register_dtype`: values=, or itemsize=, widen= and narrow=.

        Raises RuntimeError for a name that is taken, ValueError and TypeError for what is no dtype.
        """
        if self.scope is None:
            raise RuntimeError(f"{name}: `register` is for use inside the hook only, which is over")
        with _lock:
            return dtype_registrar.bring(name, self.scope, **facts)

    def finish(self):
        """Resolve the rules that name an op registered later. TypeError when it never was."""
        waiting, self._waiting = self._waiting, []
        for o in waiting:
            _set_rules(o)

    def close(self):
        """Refuse whatever comes after the end of the hook."""
        self.finish()
        self.scope = None

    def _add(self, record, schema):
        kinds = variants(record)
        o = compiler.make_op(record, schema, "out" in kinds)
        if record.owner == BUILTIN:  # those of most ops are never asked for
            compiler.set_rules_later(o, _set_rules)
        elif not compiler.set_rules(o, find_function):
            self._waiting.append(o)
        self.scope.put(ops, o.name, o)
        self.scope.note(o.taken_back)
        for name in [schema.name, *(record.aliases or "").split()]:
            place, dot, name = name.rpartition(".")
            if dot:
                self._function(place + ".", name, o, False)
                continue
            self._methods(name, o, kinds)
            self._functions(name, o, kinds)
        if record.operator:
            _operators(record.operator, o, "inplace" in kinds)
        return o

    def _methods(self, name, o, kinds):
        foreign = o.record.owner != BUILTIN
        plain = "function" in kinds and "function_" not in kinds
        if "method" in kinds:
            self._method(name, o, False)
        if "inplace" in kinds and ("method" in kinds or not (foreign or plain)):
            self._method(name + "_", o, True)

    def _functions(self, name, o, kinds):
        foreign = o.record.owner != BUILTIN
        for prefix in prefixes(o.record) if "function" in kinds or "function_" in kinds else ():
            if "function" in kinds:
                self._function(prefix, name, o, False)
            if "inplace" in kinds:
                self._function(prefix if foreign or "function_" in kinds else "_fused.", name + "_", o, True)

    def _function(self, prefix, name, o, inplace):
        found = functions.get(prefix + name)
        if found is not None:
            return self._overload(found, o)
        if o.record.owner != BUILTIN:
            f = op_namespace.packet(name, [o], o.schema.namespace, inplace=inplace)
            self._show(o.schema.namespace, name, f)
        else:
            f = _callable(OpFunction, name, o, inplace, "." + prefix[:-1] if prefix else "")
        self.scope.put(functions, prefix + name, f)

    def _show(self, namespace, name, f):
        """Make f an attribute of ops.<namespace>; a namespace lives as long as it has one."""
        if namespace not in namespaces:
            namespaces[namespace] = op_namespace.Namespace(namespace, registry.attribute, registry.names)
        vars(namespaces[namespace])[name] = f
        self.scope.note(_hide, namespace, name)

    def _method(self, name, o, inplace):
        found = methods.get(name)
        if found is not None:
            return self._overload(found, o)
        m = _callable(OpMethod, name, o, inplace)
        self.scope.put(methods, name, m)
        if name.startswith("__"):
            operators.show(name, m)
        else:
            setattr(Tensor, name, m)
            self.scope.note(_remove_method, name, m)

    def _overload(self, f, o):
        for known in (f, *_named_apart.get(f, ())):
            known.set_ops([*known.candidates, o])
            self.scope.note(_remove_overload, known, o)


def _callable(cls, name, o, inplace, module=""):
    record = o.record
    return cls(name, [o], module="tinygrad_ext" + module, owner=record.owner, inplace=inplace)


# operators that overrides see under the operator's name rather than the method's, as in PyTorch
_OPERATOR_NAMED = ("floordiv", "and", "or", "xor", "lshift", "rshift", "invert")
_named_apart = {}  # method -> the methods over the same ops that carry an operator's name


def _operators(root, o, inplace):
    method = methods[o.schema.name]
    if root[0] == "r" and root[1:] in operators.ROOTS:
        return operators.bind_reflected(root[1:], method)
    inplace = methods.get(o.schema.name + "_") if inplace else None
    if root not in _OPERATOR_NAMED:
        return operators.bind(root, method, inplace, method)
    if inplace is not None and root != "floordiv":
        inplace = _apart(f"__i{root}__", inplace, True)
    return operators.bind(root, _apart(f"__{root}__", method, False), inplace, method)


def _apart(name, method, inplace):
    named = OpMethod(name, method.candidates, owner=method.owner, inplace=inplace)
    _named_apart.setdefault(method, []).append(named)
    return named


def register_builtin(records):
    """Register the records of the package's own families."""
    register = OpRegistrar(scope.builtin)
    for record in records:
        register.add(record)
    register.finish()
    namespaces["aten"] = op_namespace.Namespace("aten", registry.builtin_attribute, registry.names)


def _set_rules(o):
    if not compiler.set_rules(o, find_function):
        raise TypeError(f"{o.name}: a derivative rule of {o.record.grad} calls an op that does not exist")


def find_function(name):
    """The callable that the text of a derivative rule names."""
    return (
        functions.get("_fused." + name)
        or functions.get(name)
        or functions.get("nn.functional." + name)
        or methods.get(name)
    )


# ---- taking back ---------------------------------------------------------------------------------------------------


def _hide(namespace, name):
    shown = vars(namespaces[namespace]) if namespace in namespaces else {}
    shown.pop(name, None)
    if not shown:
        namespaces.pop(namespace, None)


def _remove_method(name, m):
    found = vars(Tensor).get(name)
    if m in (found, getattr(found, "method", None)):  # nobody put something else in its place
        delattr(Tensor, name)


def _remove_overload(f, o):
    f.set_ops([other for other in f.candidates if other is not o])
