# Numbers of a call: set when it begins, or when the element that they follow from was read. Part of routine.pyx.

cdef int _set_numbers(Routine self, list steps, list patches) except -1:
    cdef tgx_scalar s
    for function, given, number in steps:
        found = function(*[self.slots[(<Number>a).slot] if isinstance(a, Number) else a for a in given])
        if type(found) is not type((<Number>number).value):
            raise TypeError("a number is of another type than the plan was made for")
        self.slots[(<Number>number).slot] = found
    for number, at, dtype in patches:
        s = as_scalar(self.slots[(<Number>number).slot])
        if dtype < 0:
            (<tgx_scalar *><size_t>at)[0] = s
        else:
            write_scalar(<char *><size_t>at, dtype, s.f, s.im, s.i)
    return 0


cdef int _set_late(Routine self, lowering) except -1:
    """Part what follows from elements from what is known when a call begins, by the item that reads the last of them."""
    self.late, self.number_steps, self.number_patches = {}, [], []
    for where, rows in enumerate((lowering.number_steps, lowering.number_patches)):
        for row in rows:
            number = row[2] if where == 0 else row[0]
            at = max([(<Buffer>b).first for b in (<Number>number).after], default=-1)
            if at < 0:
                (self.number_patches if where else self.number_steps).append(row)
            else:
                self.late.setdefault(at, ([], []))[where].append(row)


cdef int _item(Routine self, int which) except -1:
    cdef tgx_tensor *t
    number, source, steps, patches = self.late[which]
    t = <tgx_tensor *><size_t>source
    self.slots[(<Number>number).slot] = read_scalar(t.data, t.dtype)
    return _set_numbers(self, steps, patches)


cdef int _read_item(void *context, int which) noexcept nogil:
    with gil:
        try:
            return _item(<Routine>context, which)
        except Exception:
            return TGX_BAD_VALUE            # the interpreter says it better
