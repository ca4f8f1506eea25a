"""What `len`, iteration and `[...]` do with scripted modules: what the class says of which they were made."""

from tinygrad_ext import nn

_SEQUENCES = (nn.ModuleList, nn.Sequential)


def _magic(name):
    def run(self, *args):
        cls = self.__dict__["_tgx_class"]
        found = getattr(cls, name, None)
        if found is None:
            raise TypeError(f"'{self.original_name}' object has no {name}")
        if name == "__getitem__" and issubclass(cls, _SEQUENCES) and found in [c.__getitem__ for c in _SEQUENCES]:
            return list(self._modules.values())[args[0]]  # a slice is a list, for it is no module that was compiled
        return found(self, *args)

    run.__name__ = name
    return run


def give_magic(cls):
    """Let scripted modules of a class be asked as containers are; they are true, however many parts they have."""
    for name in ("__len__", "__iter__", "__getitem__", "__contains__"):
        setattr(cls, name, _magic(name))
    cls.__bool__ = lambda self: True
