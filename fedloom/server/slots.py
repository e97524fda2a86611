"""A file of records of one size, each in a numbered slot that is never changed while it is needed.

A record goes to a slot that neither the present table nor a kept checkpoint refers to, so a kill at
any moment leaves every slot of the last checkpoints as it was.
"""

import mmap
import os
import tempfile
import weakref
import zlib
from collections.abc import Iterable
from io import FileIO
from pathlib import Path

import numpy as np

from fedloom import files
from fedloom.errors import RunDirectoryError
from fedloom.server.checkpoint import KEEP

AROUND = 2**16  # bytes that the system may map beside the record that is read


class Slots:
    """Records of `size` bytes in the file `path`, or in one without a name that ends with it.

    Written by plain writes, so that a full disk is an error and no signal; read through a mapping,
    of which about `budget` bytes stay resident. The file is made by the first write.
    """

    def __init__(self, path: Path | None, size: int, budget: int) -> None:
        self.path, self.size, self.budget = path, size, budget
        self.end = 0
        """Slots in the file."""
        self.saves = 0
        """Checkpoints taken so far."""
        self.sums = np.empty(0, np.uint32)
        """[end] CRC-32 of each record."""
        self._born = np.empty(0, np.int64)  # [end] checkpoints taken before each was written
        self._free: list[int] = []
        self._ended: list[int] = []  # given up by the latest update, and in no checkpoint
        self._kept: list[tuple[int, int]] = []  # (last checkpoint that has it, slot)
        self._file: FileIO | None = None
        self._map: mmap.mmap | None = None
        self._touched = 0

    def open(self, *, new: bool) -> None:
        """Open the file, emptied if `new`."""
        if self.path is None:
            descriptor, name = tempfile.mkstemp(prefix="fedloom-")
            self._file = FileIO(descriptor, "r+b")
            if os.name == "posix":
                os.unlink(name)
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = FileIO(self.path, "w+b" if new else "r+b")
        weakref.finalize(self, self._file.close)

    def put(self, records: Iterable[bytearray]) -> list[int]:
        """Write records; gives their slots. What earlier updates gave up is used again.

        Raises RunDirectoryError when there is no room.
        """
        self._free += self._ended
        self._ended = []
        try:
            return [self._put(record) for record in records]
        except OSError as error:
            where = self.path or Path(tempfile.gettempdir(), "memories.bin")
            raise files.write_error(where, self.size, error) from error

    def _put(self, record: bytearray) -> int:
        if self._file is None:
            self.open(new=True)
        assert self._file is not None
        slot = self._free.pop() if self._free else self.end
        if slot == self.end:
            self._reserve(self.end + 1)
        view = memoryview(record)
        self._file.seek(slot * self.size)
        while view:
            view = view[self._file.write(view) :]
        self.sums[slot], self._born[slot] = zlib.crc32(record), self.saves
        return slot

    def _reserve(self, end: int) -> None:
        if end > len(self.sums):
            more = max(1024, len(self.sums), end - len(self.sums))
            self.sums = np.concatenate([self.sums, np.zeros(more, np.uint32)])
            self._born = np.concatenate([self._born, np.zeros(more, np.int64)])
        self.end = end

    def give_up(self, slots: Iterable[int]) -> None:
        """Slots that the newest table has no more.

        They stay as they are until the next update, and for as long as a kept checkpoint has them.
        """
        for slot in slots:
            if self._born[slot] == self.saves:
                self._ended.append(slot)
            else:
                self._kept.append((self.saves, slot))

    def read(self, slot: int) -> np.ndarray:
        """uint8 [size], a view that holds until the next `put` or `read`."""
        assert self._file is not None
        begin = slot * self.size
        if self._map is None or begin + self.size > len(self._map):
            self._map = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
            self._touched = 0
        elif self._touched > self.budget and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
            self._touched = 0
        self._touched += self.size + AROUND
        return np.frombuffer(self._map, np.uint8, self.size, begin)

    def sync(self) -> list[int]:
        """Wait until all is on the disk, for a checkpoint.

        Gives the slots that only the checkpoint before it needs; what older ones needed may be used
        again.
        """
        if self._file is not None:
            os.fsync(self._file.fileno())
        self.saves += 1
        oldest = self.saves - KEEP + 1
        self._free += [slot for last, slot in self._kept if last < oldest]
        self._kept = [(last, slot) for last, slot in self._kept if last >= oldest]
        return [slot for _, slot in self._kept]

    def restore(
        self, clients: np.ndarray, slots: np.ndarray, sums: np.ndarray, kept: np.ndarray
    ) -> None:
        """Go on with the file of a checkpoint: what it and the one before it need stays.

        Raises RunDirectoryError that names the first client whose record isn't what was saved.
        """
        where = str(self.path)
        try:
            self.open(new=False)
            assert self._file is not None
            length = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise RunDirectoryError(
                f"can't read {where}, which holds the memories of {len(clients)} clients: "
                f"{error.strerror}; restore the file, or run anew (overwrite)"
            ) from None
        self._reserve(max(-(-length // self.size), int(max([-1, *slots, *kept])) + 1))
        self.sums[slots] = sums
        record = bytearray(self.size)
        for place in np.argsort(slots).tolist():
            self._file.seek(int(slots[place]) * self.size)
            if self._file.readinto(record) != self.size or zlib.crc32(record) != sums[place]:
                raise RunDirectoryError(
                    f"{where} is damaged: the memory of client {clients[place]} is not the one "
                    "that the checkpoint names; restore the file, or run anew (overwrite)"
                )
        self.saves = 1
        self._kept = [(0, slot) for slot in kept.tolist()]
        unused = np.ones(self.end, bool)
        unused[slots] = unused[kept] = False
        self._free = np.flatnonzero(unused).tolist()

    def close(self) -> None:
        """Let go of the file."""
        self._map = None
        if self._file is not None:
            self._file.close()
