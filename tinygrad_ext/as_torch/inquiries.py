"""Private functions of PyTorch that go through tuples, lists and dicts, and that ask what tensors and files are."""


def _refuse(value, told):
    wanted = told or "what is asked for"
    raise ValueError(f"expected {wanted} in tuples, lists and dicts of any depth, and met a {type(value).__name__}")


def _nested_map(condition, fn, condition_msg=None):
    """A function that replaces what fulfils the condition within tuples, lists and dicts."""

    def mapped(value):
        if condition(value):
            return fn(value)
        if value is None:
            return None
        if isinstance(value, dict):
            return {key: mapped(inner) for key, inner in value.items()}
        if not isinstance(value, (tuple, list)):
            _refuse(value, condition_msg)
        inner = map(mapped, value)
        return type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)

    return mapped


def _iter_filter(condition, allow_unknown=False, condition_msg=None, conversion=None):
    """A function that goes through what fulfils the condition within tuples, lists and dicts."""

    def found(value):
        value = value if conversion is None else conversion(value)
        if condition(value):
            yield value
        elif isinstance(value, (tuple, list, dict)):
            for inner in value.values() if isinstance(value, dict) else value:
                yield from found(inner)
        elif allow_unknown and value is not None:
            yield value
        elif value is not None:
            _refuse(value, condition_msg)

    return found


def _is_zipfile(f):
    """Whether a zip archive begins where an open file stands, which stays there."""
    start = f.tell()
    first = f.read(4)
    f.seek(start)
    return first == b"PK\x03\x04"


def assert_metadata_eq(assert_eq, m1, m2, *, skip_symbolic=False, skip_leaf=False):
    """Call `assert_eq` for each thing in which two tensors of different devices should be alike."""
    names = ["dtype", "requires_grad", "is_sparse", "layout"]
    for name in names + ["shape"] * (not skip_symbolic) + ["is_leaf"] * (not skip_leaf):
        assert_eq(getattr(m1, name), getattr(m2, name))
    for name in ["is_conj", "is_neg", "_is_view"] + ["stride", "storage_offset"] * (not skip_symbolic):
        assert_eq(getattr(m1, name)(), getattr(m2, name)())
    assert_eq(m1.grad is not None, m2.grad is not None)
    for part in ("grad", "_base"):
        if getattr(m1, part) is not None:
            assert_metadata_eq(
                assert_eq, getattr(m1, part), getattr(m2, part), skip_symbolic=skip_symbolic, skip_leaf=skip_leaf
            )


def _slice_argnums(args, argnums, as_tuple=True):
    """The arguments that a number or a tuple of numbers names: a tuple of them, or the one where that is asked for."""
    from tinygrad_ext.func.differentiation import positions  # lazy: it needs transforms

    chosen = tuple(args[i] for i in positions(argnums, len(args)))
    return chosen if as_tuple or isinstance(argnums, tuple) else chosen[0]
