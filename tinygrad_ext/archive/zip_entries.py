"""The entries of a zip: stored, apart from each other, and inside the file.

Sizes and places are those of the table of contents. Checksums are not compared: PyTorch does not, and can be told to
write none.
"""

import struct
import zipfile

_LOCAL = 30  # bytes of the header before an entry's name


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
                f"its entry {name} is compressed, which torch.save never does, and a small one can hold gigabytes: "
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

    def storage(self, name):
        """The bytes of an entry as a storage."""
        return self._source.storage(*self._places[name], 16)
