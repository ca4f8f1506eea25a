"""What is registered, by whom, and how it gets there and goes again."""

from tinygrad_ext.registry.table import (
    attribute,
    builtin_attribute,
    function_by_path,
    functions,
    methods,
    module_owners,
    module_samples,
    modules,
    names,
    namespace,
    namespaces,
    ops,
    prefixes,
    variants,
)
