"""Lists, dicts and objects that nobody but the graph knows: a change gives the changed one.

`prim::own` gives an object that is the graph's alone. The others take their first argument over: they change it and
give it back, and nobody reads the argument afterwards (`passes.Functional` sees to that), so nothing is copied. What
they give besides stands before the changed object.
"""

from . import containers, objects  # noqa: F401  the rows that have a form here
from .table import TABLE, primitive

FORMS = {
    f"{kind}.{old}": f"{kind}.{new}"
    for kind, words in {
        "list": {
            "append": "appended", "extend": "extended", "insert": "inserted", "pop": "popped", "remove": "removed",
            "clear": "cleared", "reverse": "turned", "sort": "in_order",
        },
        "dict": {
            "pop": "popped", "pop_or": "popped_or", "popitem": "item_popped", "setdefault": "default_set",
            "update": "updated", "clear": "cleared",
        },
    }.items()
    for old, new in words.items()
}  # fmt: skip
FORMS |= {
    "set_item": "item_set", "set_slice": "slice_set", "delete_item": "item_deleted", "delete_slice": "slice_deleted",
    "setattr": "attribute_set",
}  # fmt: skip


def _own(held):
    """A copy; what a class says of copying is not asked, for a graph may come from a file."""
    if isinstance(held, (list, dict)):
        return held.copy()
    made = object.__new__(type(held))
    made.__dict__.update(vars(held))
    return made


def _taking(row):
    def run(held, *args):
        found = row.run(held, *args)
        return held if row.returns == [] else (found, held)

    return run


for _old, _new in FORMS.items():
    _row = TABLE[f"prim::{_old}"]
    primitive(_new, " ".join(_row.args), None, _taking(_row), effect="takes")
primitive("own", "Any", None, _own, effect="takes")
