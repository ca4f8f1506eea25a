"""What is registered, by whom, and how it gets there and goes again."""

from tinygrad_ext.core.call.op_tables import functions, methods, ops
from tinygrad_ext.registry.table import (
    attribute,
    builtin_attribute,
    find,
    function_by_path,
    module_owners,
    module_samples,
    modules,
    names,
    namespace,
    namespace_names,
    namespaces,
    prefixes,
    variants,
)
