# Dtypes that plugins bring: their names and numbers. Part of dtype.pyx.

cdef dict _coded = {}           # name -> dtype, those that are gone too


def add_dtype(str name, int itemsize, tuple facts):
    """A new dtype of a name; the one that was there before when it comes back. RuntimeError for a taken name."""
    cdef dtype d = _coded.get(name)
    cdef int start = TGX_CODED + CODED_EACH * CODED_SIZES.index(itemsize)
    cdef int number
    if name in by_name:
        raise RuntimeError(f"there is a dtype '{name}' already: choose another name")
    if d is None or d.itemsize != itemsize:
        number = next((i for i in range(start, start + <int>CODED_EACH) if DTYPES[i] == NULL), -1)
        if number < 0:
            raise RuntimeError(f"dtype '{name}': at most {CODED_EACH} dtypes of {itemsize} byte{'s' if itemsize > 1 else ''} can be "
                               "brought in one process")
        d = dtype.__new__(dtype)
        d.name, d.id, d.itemsize, d.typecode = name, number, itemsize, ""
        d.is_floating_point = d.is_signed = True
        DTYPES[number] = <PyObject *>d
        Py_INCREF(d)
        _coded[name] = d
    by_name[name] = d
    finfo._FACTS[name] = facts
    return d


def set_dtype_finder(find):
    """Hand in find(owner), which loads what the text of an owner names."""
    _contexts["find_dtype"] = find


def find_dtype(str name, str owner):
    """The dtype of a name, after what brings it was loaded; None: it is not here."""
    if name not in by_name and "find_dtype" in _contexts:
        _contexts["find_dtype"](owner)
    return by_name.get(name)


def drop_dtype(str name):
    """Let a dtype be gone; returns the number, which stays its own."""
    finfo._FACTS.pop(name, None)
    by_name.pop(name, None)
    return (<dtype>_coded[name]).id
