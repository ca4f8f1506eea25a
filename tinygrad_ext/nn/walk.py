"""Walking a tree of modules and finding a part by its dotted name."""

from tinygrad_ext.core.call.boundary import boundary


def _is_own(module, name):
    """Whether a method is the one below, by which names are put together that nobody asks for."""
    return getattr(getattr(module, name), "__func__", None) is getattr(Walking, name)


@boundary
class Walking:
    """The part of Module that iterates and looks up."""

    def children(self):
        """Iterate over the direct child modules."""
        for _, module in self.named_children():
            yield module

    def named_children(self):
        """Iterate over ``(name, module)`` of the direct children, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate=True):
        """Iterate over this module and everything below it, each module once unless ``remove_duplicate`` is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """Iterate over ``(dotted name, module)`` of the whole tree, this module first.

        Args:
            memo: modules to leave out; filled on the way.
            prefix: put in front of every name.
            remove_duplicate: show a module reachable by two names only once.
        """
        seen = set() if memo is None else memo
        if self in seen:
            return
        if remove_duplicate:
            seen.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(seen, below, remove_duplicate)

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over ``(dotted name, member)``; ``get_members_fn`` gives one module's items."""
        seen = set()
        owners = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in owners:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse=True):
        """Iterate over the parameters, here and (with ``recurse``) below, each once."""
        if not _is_own(self, "named_parameters") or not _is_own(self, "_named_members"):
            for _, parameter in self.named_parameters(recurse=recurse):
                yield parameter
            return
        seen = set()
        for module in self.modules() if recurse and self._modules else (self,):
            for parameter in module._parameters.values():
                if parameter is not None and parameter not in seen:
                    seen.add(parameter)
                    yield parameter

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over ``(dotted name, parameter)``."""
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """Iterate over the buffers, here and (with ``recurse``) below, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """Iterate over ``(dotted name, buffer)``."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def get_submodule(self, target):
        """Return the module at the dotted name ``target``; ``""`` is this module.

        Raises:
            AttributeError: a step of the path does not exist or is no module.
        """
        module = self
        for step in target.split(".") if target else ():
            module = _child(module, step)
        return module

    def set_submodule(self, target, module, strict=False):
        """Put ``module`` at the dotted name ``target``.

        Args:
            strict: refuse unless something is there already.

        Raises:
            ValueError: ``target`` is empty or ``module`` is no module.
            AttributeError: the path to it does not exist.
        """
        if not target:
            raise ValueError("Cannot set the submodule without a target name! Pass 'child' or 'a.b.c'.")
        if not isinstance(module, Walking):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            _child(parent, name)
        setattr(parent, name, module)

    def get_parameter(self, target):
        """Return the parameter at the dotted name ``target``, else raise AttributeError."""
        owner, name, found = self._find(target)
        if found is None or name not in owner._parameters:
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target):
        """Return the buffer at the dotted name ``target``, else raise AttributeError."""
        owner, name, found = self._find(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _find(self, target):
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{owner._get_name()} has no attribute `{name}`{did_you_mean(owner, name)}")
        return owner, name, getattr(owner, name)


def _child(module, name):
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`{did_you_mean(module, name)}")
    found = getattr(module, name)
    if not isinstance(found, Walking):
        raise AttributeError(f"`{name}` is not an nn.Module")
    return found


def did_you_mean(owner, name):
    """Return ``". Did you mean: 'x'?"`` for the nearest of the owner's names, or ``""``."""
    return suggestion(name, [known for known in dir(owner) if not known.startswith("__")])


def suggestion(name, known):
    """Return ``". Did you mean: 'x'?"`` for the nearest of ``known``, or ``""``."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.7)
    return f". Did you mean: {near[0]!r}?" if near else ""
