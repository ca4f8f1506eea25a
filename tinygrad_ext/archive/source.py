"""A file whose parts are read straight into the memory they end up in, or mapped there."""

import io
import mmap

from tinygrad_ext.core.call import construct
from tinygrad_ext.core.call import interop as _core
from tinygrad_ext.core.data import storage as _storage
from tinygrad_ext.core.data.dtype import by_name

CHUNK = 1 << 26  # bytes between two looks at Ctrl-C
_BYTE = by_name["uint8"]


class Source:
    """A file open for binary reading, from its present position to its end.

    Mapped, its bytes are memory of this process that a write copies; who cuts the file off afterwards ends the process
    (SIGBUS) when it reads what was there.
    """

    def __init__(self, file, mapped=False):
        if not getattr(file, "seekable", lambda: False)():
            file = io.BytesIO(_binary(file.read()))
        self._file, self._start = file, file.tell()
        self.size = file.seek(0, io.SEEK_END) - self._start
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped and self.size else None

    def bytes(self, at, n):
        """n bytes from a position. ValueError where the file has fewer."""
        self._check(at, n)
        self._file.seek(self._start + at)
        found = _binary(self._file.read(n))
        if len(found) != n:
            raise ValueError(f"its bytes {at} to {at + n} cannot be read: it was cut off")
        return found

    def storage(self, at, n, alignment):
        """A storage of n bytes from a position; mapped where that is asked for and `alignment` allows it."""
        self._check(at, n)
        if self._map is not None and n and (self._start + at) % alignment == 0:
            return _core.storage_of(construct.over_bytes(self._map, _BYTE, self._start + at, n))
        storage = _storage.empty_storage(n)
        self.read_into(at, memoryview(_core.window(storage, _BYTE, [n], [1], 0)))
        return storage

    def inside(self, at, n):
        """Its bytes from a position as a Source."""
        self._check(at, n)
        part = object.__new__(Source)
        part._file, part._start, part.size, part._map = self._file, self._start + at, n, self._map
        return part

    def read_into(self, at, memory):
        """Fill a memory of bytes from a position."""
        self._check(at, len(memory))
        self._file.seek(self._start + at)
        read_into, done = getattr(self._file, "readinto", None), 0
        while done < len(memory):
            room = memory[done : done + CHUNK]
            if read_into is not None:
                n = read_into(room) or 0
            else:
                found = _binary(self._file.read(len(room)))
                n = len(found)
                room[:n] = found
            if not n:
                raise ValueError(f"its bytes {at} to {at + len(memory)} cannot be read: it was cut off")
            done += n

    def entries(self):
        """The file itself, at its beginning, for who reads a table of contents."""
        self._file.seek(self._start)
        return self._file if self._start == 0 else io.BytesIO(_binary(self._file.read()))

    def _check(self, at, n):
        if not 0 <= at <= at + n <= self.size:
            raise ValueError(f"it is cut off: bytes {at} to {at + n} are missing, it has {self.size}")


def _binary(data):
    if isinstance(data, str):
        raise TypeError("load(): the file must be open for binary reading ('rb'), this one gives text")
    return data
