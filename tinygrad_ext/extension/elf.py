"""What a shared library exports as tgx_extension_v1, read off the file: to load it would run its constructors.

Only what is needed of ELF is read: the dynamic symbols, and the bytes where one of them lies. Every number of the file
is checked against its length. What is no ELF file is left to the system's loader to refuse.
"""

import struct

SYMBOL = b"tgx_extension_v1"
_SIZE = 16  # bytes in front: size, major, minor, needs
_DYNSYM, _MOST = 11, 1 << 20


def exported(path):
    """(size, major, minor, needs). OSError for a file that has no such symbol, or is no library."""
    with open(path, "rb") as f:
        data = f.read()
    try:
        found = _find(data)
    except (struct.error, IndexError, ValueError, OverflowError):
        found = None
    if found is None:
        raise OSError(
            f"load_library: {path} is no shared library that exports tgx_extension_v1: build it from C with -shared "
            '-fPIC, and end one file with TGX_EXTENSION("name", "version", init)'
        )
    room, raw = found
    size, major, minor, needs = struct.unpack("<IHHQ", raw)
    if room and room < size:
        raise ImportError(
            f"load_library: {path} exports a tgx_extension_v1 of {room} bytes that says it has {size}; build it with "
            "the tgx.h of this package"
        )
    return size, major, minor, needs


def undefined(path):
    """Names of the symbols that a library takes from elsewhere, the weak ones left out."""
    with open(path, "rb") as f:
        data = f.read()
    return [name.decode() for name, info, section, _, _ in _symbols(data) if not section and name and info >> 4 == 1]


def _find(data):
    """(bytes of the symbol, its first 16), or None."""
    for name, _, section, value, size in _symbols(data):
        if name == SYMBOL and section:
            at = _offset(data, value)
            return size, data[at : at + _SIZE]
    return None


def _symbols(data):
    """(name, info, section, value, size) of the dynamic symbols."""
    if data[:6] != b"\x7fELF\x02\x01":  # 64 bits, little endian
        raise ValueError("no ELF file")
    table, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    for section in sections:
        if section[1] != _DYNSYM:
            continue
        strings = sections[section[6]]
        names = data[strings[4] : strings[4] + strings[5]]
        for at in range(section[4], min(section[4] + section[5], section[4] + 24 * _MOST), 24):
            name, info, _, where, value, length = struct.unpack_from("<IBBHQQ", data, at)
            end = names.index(b"\0", name)
            yield names[name:end], info, where, value, length


def _offset(data, address):
    """Where in the file the byte at an address is."""
    table, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for i in range(count):
        kind, _, offset, start, _, length, _, _ = struct.unpack_from("<IIQQQQQQ", data, table + i * size)
        if kind == 1 and start <= address and address + _SIZE <= start + length:
            return offset + address - start
    raise ValueError("an address outside of the file")
