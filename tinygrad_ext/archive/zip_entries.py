"""The entries of a zip: stored, apart from each other, inside the file, and written so that they can be mapped.

Sizes and places are those of the table of contents. Checksums are not compared: PyTorch does not, and can be told to
write none.
"""

import struct
import zipfile

_LOCAL = 30  # bytes of the header before an entry's name
_ZIP64 = 20  # bytes of its field for sizes of more than 32 bits


class Entries:
    """Where each entry of a zip begins and how long it is. ValueError for a zip in which these cannot be believed."""

    def __init__(self, source, budget):
        with zipfile.ZipFile(source.entries()) as archive:
            infos, self._end = archive.infolist(), archive.start_dir
        budget.spend(len(infos))
        self._source = source
        self._places = {}
        after = 0
        for info in sorted(infos, key=lambda info: info.header_offset):
            self._check(info)
            if info.header_offset < after:
                raise ValueError(f"its entry {info.filename} overlaps the one before it")
            begin = self._begin(info)
            after = begin + info.file_size
            if after > self._end:
                raise ValueError(f"its entry {info.filename} goes on beyond the end of the data")
            self._places[info.filename] = begin, info.file_size

    def _check(self, info):
        name = info.filename
        if name in self._places:
            raise ValueError(f"it has two entries {name}")
        if info.flag_bits & 1:
            raise ValueError(f"its entry {name} is encrypted")
        if info.compress_type != zipfile.ZIP_STORED:
            raise ValueError(
                f"its entry {name} is compressed, and a small one can hold gigabytes: "
                "unpack the file and pack it again with zip -0"
            )
        if info.compress_size != info.file_size:
            raise ValueError(f"its entry {name} is stored, but in {info.compress_size} bytes for {info.file_size}")

    def _begin(self, info):
        local = self._source.bytes(info.header_offset, _LOCAL)
        if local[:4] != b"PK\x03\x04":
            raise ValueError(f"its entry {info.filename} does not begin where the table of contents says")
        return info.header_offset + _LOCAL + sum(struct.unpack("<2H", local[26:30]))

    def names(self):
        """Names of all entries."""
        return self._places.keys()

    def bytes(self, name):
        """The bytes of an entry. KeyError when there is none of that name."""
        return self._source.bytes(*self._places[name])

    def size(self, name):
        """The number of bytes of an entry."""
        return self._places[name][1]

    def source(self, name):
        """An entry as a Source."""
        return self._source.inside(*self._places[name])

    def storage(self, name):
        """The bytes of an entry as a storage."""
        return self._source.storage(*self._places[name], 16)


ALIGNMENT = 64
_PADDING = 0xD935  # the kind of extra field that others use for the same


def write_entry(archive, name, write):
    """Add an entry to a ZipFile open for writing: stored, its data aligned, with the same bytes each time.

    write(file) writes the data; bytes are written as they are.
    """
    info = zipfile.ZipInfo(name)
    begin = archive.fp.tell() + _LOCAL + len(name.encode()) + _ZIP64 + 4
    info.extra = struct.pack("<HH", _PADDING, -begin % ALIGNMENT) + bytes(-begin % ALIGNMENT)
    with archive.open(info, "w", force_zip64=True) as file:
        if isinstance(write, bytes):
            file.write(write)
        else:
            write(file)
