"""What a lower room asks of a higher one, and what is loaded only when somebody asks.

An import would point up. So who puts the package together says once which module stands behind a word, and
`later("plugins")` gives that module.
"""

import importlib

_modules = {}


def set_modules(modules):
    """{word: name of a module}."""
    _modules.update(modules)


def later(word):
    """The module that stands behind a word, loaded now if it was not."""
    return importlib.import_module(_modules[word])
