# Devices, those of this process, of other machines and of plugins. Part of dtype.pyx.

cdef dict _numbers = {"cpu": CPU, "meta": META}         # of the devices that memory can be asked for on
cdef list _devices = []                                 # by number, those that are gone too
_ELSEWHERE = ("cuda", "mps", "xpu", "hip", "xla", "ipu", "vulkan", "mkldnn", "opengl", "opencl", "ideep", "ve",
              "fpga", "maia", "lazy", "mtia", "hpu", "privateuseone")


cdef tuple _parted(str text):
    """"cuda:1" as ("cuda", 1)."""
    type, _, number = text.partition(":")
    if not (number.isascii() and number.isdigit()) or (len(number) > 1 and number[0] == "0"):
        raise RuntimeError(f"Invalid device string: '{text}'")
    return type, int(number)


cdef dict _contexts = {}        # what `with device(...)` does: filled by a layer above


def set_device_context(enter, leave):
    """Hand in what entering and leaving `with device(...)` does."""
    _contexts["enter"], _contexts["exit"] = enter, leave


cdef class device:
    """Where a tensor lives: ``device("cpu")`` holds data, ``device("meta")`` holds shape and dtype only.

    The devices of other machines, ``device("cuda:1")``, are objects too: what asks for memory on one raises.
    """

    def __init__(self, type=None, index=None, *, device=None):
        type, given = (device, type) if type is None and index is None else (type, device)
        if type is None or given is not None:
            raise TypeError("device(): expected a type, as in device('cpu', 0), or the keyword argument 'device' alone")
        if isinstance(type, self.__class__) and index is None:
            type, index = type.type, type.index
        if isinstance(type, int) and not isinstance(type, bool):
            refuse_number(type)
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {type.__class__.__name__}")
        if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
            raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
        if ":" in type:
            if index is not None:
                raise RuntimeError(f"device(): type (string) must not include an index because index was passed explicitly: {type}")
            type, index = _parted(type)
        if index is not None and index < 0:
            raise RuntimeError(f"device(): Device index must not be negative, got {index}")
        if type not in _numbers and type not in _ELSEWHERE:
            _find(type)
        self.type, self.index, self.id = type, index, _numbers.get(type, -1)

    def __repr__(self):
        return f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other):
        if not isinstance(other, device):
            return NotImplemented
        return self.type == (<device>other).type and self.index == (<device>other).index

    def __hash__(self):
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, (self.type, self.index)

    def __enter__(self):
        _contexts["enter"](self)
        return self

    def __exit__(self, *exc):
        _contexts["exit"](self)


cdef device _cpu = device("cpu"), _meta = device("meta")
_devices += [_cpu, _meta]


# ---- devices that plugins bring ------------------------------------------------------------------------------------

cdef int _find(str type) except -1:
    """Let what brings a device be loaded; RuntimeError when nothing does."""
    why = _contexts["find"](type) if "find" in _contexts else ""
    if type not in _numbers:
        names = ", ".join((*_numbers, *_ELSEWHERE))
        raise RuntimeError(f"Expected one of {names} device type at start of device string: {type}{why}")
    return 0


def set_device_finder(find):
    """Hand in find(name), which loads what brings a device of that name, and returns why it is not there."""
    _contexts["find"] = find


def add_device(str name):
    """The number of a new device; of one that comes back, the number that it had. RuntimeError for a taken name."""
    if name in _numbers or name in _ELSEWHERE:
        raise RuntimeError(f"there is a device '{name}' already: choose another name")
    number = next((i for i, known in enumerate(_devices) if (<device>known).type == name), len(_devices))
    if number >= FLIPPED:
        raise RuntimeError(f"device '{name}': at most {FLIPPED - 2} devices can be brought in one process")
    _numbers[name] = number
    if number == len(_devices):
        _devices.append(device(name, 0))
    return number


def drop_device(str name):
    """Let a device be gone; returns the number, which stays its own."""
    return _numbers.pop(name)


cdef int device_id(object d) except -1:
    """The number of a device that memory is asked for on; those of other machines have none."""
    if isinstance(d, str):
        d = device(d)
    if type(d) is not device:
        raise TypeError(f"device must be str or device, not {type(d).__name__}")
    if (<device>d).id < 0:
        _refuse_elsewhere((<device>d).type)
    if (<device>d).id > META and (<device>d).index:
        raise RuntimeError(f"device {d}: there is one device '{(<device>d).type}', whose index is 0")
    return (<device>d).id


def refuse_number(number):
    """Raise for a device that is named by its number alone, which PyTorch takes as that of an accelerator."""
    raise RuntimeError(f"Cannot access accelerator device when none is available: {number} alone is the number of one. Use "
                       "device='cpu'")


cdef int _refuse_elsewhere(str type) except -1:
    kind = AssertionError if type in ("cuda", "xpu", "mtia") else NotImplementedError
    raise kind(f"tinygrad_ext is not compiled with {type.upper()} enabled: this build holds tensors on cpu and meta. Use "
               f"device='cpu'; tinygrad_ext.cuda.is_available() tells which machine a program runs on.")


cdef object device_of(int id):
    return _cpu if is_host(id) else _devices[id]
