"""What clients remember between rounds: one record a client that has taken part, in one file.

All memories of a run have one layout, so a record is a fixed number of bytes (see
`fedloom.server.slots`). They always lie in the file, also where they would fit into memory: one
path gives the same bits whatever the budget, the system's page cache makes it as quick as memory,
and a checkpoint needs only to say which slot is whose.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from fedloom.errors import FedloomError, RunDirectoryError
from fedloom.server.checkpoint import flatten, restore
from fedloom.server.slots import Slots
from fedloom.types import Params, State

PAGE = 1024  # clients whose slots are stored, and copied, together
NOBODY = np.full(PAGE, -1, np.int32)


class Layout:
    """Names, shapes and types of a state's leaves, and where they stand in a record."""

    def __init__(self, state: State) -> None:
        leaves, self._outline = flatten(state)
        self._like = {name: torch.empty(0, dtype=leaf.dtype) for name, leaf in leaves.items()}
        self._shapes = {name: leaf.shape for name, leaf in leaves.items()}
        self._bytes = {n: leaf.numel() * leaf.element_size() for n, leaf in leaves.items()}
        self.size = sum(self._bytes.values())
        """Bytes of a record."""

    def record(self, state: State, client: int) -> bytearray:
        """The state as bytes. Raises FedloomError, with the client, if it has another layout."""
        leaves, _ = flatten(state)
        self._check(leaves, client)
        result, at = bytearray(self.size), 0
        for name, size in self._bytes.items():
            if size:
                flat = leaves[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8)
                result[at : at + size] = flat.numpy().data
            at += size
        return result

    def state(self, record: np.ndarray) -> State:
        """The inverse of `record`; the leaves are copies."""
        leaves: Params = {}
        at = 0
        for name, size in self._bytes.items():
            flat = torch.empty(size, dtype=torch.uint8)
            flat.numpy()[:] = record[at : at + size]
            leaves[name] = flat.view(self._like[name].dtype).view(self._shapes[name])
            at += size
        return restore(leaves, self._outline)

    def _check(self, leaves: Params, client: int) -> None:
        for name in [*self._shapes, *(name for name in leaves if name not in self._shapes)]:
            found = _described(leaves[name]) if name in leaves else "missing"
            expected = "nothing"
            if name in self._shapes:
                expected = _described(self._like[name], self._shapes[name])
            if found != expected:
                raise FedloomError(
                    f"what client {client} remembers: {name!r} is {found}, expected {expected}; "
                    "a memory keeps the names, shapes and types that init_client gives it"
                )


def _described(leaf: Tensor, shape: torch.Size | None = None) -> str:
    kind = str(leaf.dtype).removeprefix("torch.")
    return f"{kind} {list(leaf.shape if shape is None else shape)}"


@dataclass(frozen=True, eq=False)
class Memories(Mapping[int, State]):
    """Client -> what it remembers, for clients that have taken part; reading gives copies.

    `updated` gives the next round's and leaves these as they are until the next round's are
    updated in turn: their slots are then used again, and reading from here raises ValueError.
    """

    layout: Layout
    slots: Slots = field(repr=False)
    version: list[int] = field(repr=False)
    """One number that all rounds share: which of them is the newest."""
    pages: dict[int, np.ndarray] = field(default_factory=dict, repr=False)
    """client // PAGE -> int32 [PAGE], the slot of each client there, -1 for none."""
    count: int = 0
    number: int = 0

    @classmethod
    def begin(cls, like: State, path: Path | None = None, budget: int = 2**30) -> Self:
        """No memories yet, all of which will be laid out as `like`.

        They go to the file `path`; without it to one that vanishes with the process. About `budget`
        bytes of the file are kept mapped.
        """
        layout = Layout(like)
        return cls(layout, Slots(path, layout.size, budget), [0])

    def updated(self, new: Mapping[int, State]) -> Self:
        """The memories after a round in which these clients took part; costs what they cost."""
        if not new or not self.layout.size:
            return self
        if self.number != self.version[0]:  # a second future: it gets a file of its own
            apart = type(self)(self.layout, Slots(None, self.layout.size, self.slots.budget), [0])
            return apart.updated({**self, **new})
        slots = self.slots.put(self.layout.record(state, client) for client, state in new.items())
        pages, fresh, ended = dict(self.pages), set[int](), []
        for client, slot in zip(new, slots, strict=True):
            page, place = divmod(client, PAGE)
            if page not in fresh:
                pages[page] = pages.get(page, NOBODY).copy()
                fresh.add(page)
            if pages[page][place] >= 0:
                ended.append(int(pages[page][place]))
            pages[page][place] = slot
        self.slots.give_up(ended)
        self.version[0] += 1
        count = self.count + len(new) - len(ended)
        return type(self)(self.layout, self.slots, self.version, pages, count, self.version[0])

    def save(self) -> State:
        """What a checkpoint holds of them: who has which slot, with its checksum; {} for nobody.

        Waits for the disk. Call it just before the checkpoint is written: slots that only
        checkpoints older than the last two need are used again from then on.
        """
        if self.slots.path is None or self.number != self.version[0]:
            raise ValueError("only the newest memories of a run with a folder can be saved")
        kept = self.slots.sync()
        if not self.count:
            return {}
        clients, slots = self._table()
        table = np.stack([clients, slots, self.slots.sums[slots].astype(np.int64)], 1)
        return {"table": torch.from_numpy(table), "kept": torch.tensor(kept, dtype=torch.int64)}

    @classmethod
    def restore(cls, saved: State, like: State, path: Path, budget: int = 2**30) -> Self:
        """The memories of a checkpoint, every record compared with its checksum.

        Raises RunDirectoryError that names the file, and the client whose record is damaged.
        """
        empty = cls.begin(like, path, budget)
        if not saved:
            return empty
        if set(saved) != {"table", "kept"} or not empty.layout.size:
            raise RunDirectoryError(
                f"the checkpoint doesn't say where {path} holds what clients remember; it was made "
                "by another version or method: run anew (overwrite)"
            )
        clients, slots, sums = saved["table"].numpy().T
        empty.slots.restore(clients, slots, sums, saved["kept"].numpy())
        pages: dict[int, np.ndarray] = {}
        for client, slot in zip(clients.tolist(), slots.tolist(), strict=True):
            page, place = divmod(client, PAGE)
            pages.setdefault(page, NOBODY.copy())[place] = slot
        return cls(empty.layout, empty.slots, empty.version, pages, len(clients))

    def close(self) -> None:
        """Let go of the file."""
        self.slots.close()

    def __getitem__(self, client: int) -> State:
        slot = self._slot(client)
        if slot < 0:
            raise KeyError(client)
        if self.number < self.version[0] - 1:
            raise ValueError("these memories are of an earlier round; their slots are used again")
        return self.layout.state(self.slots.read(slot))

    def __contains__(self, client: Any) -> bool:
        return self._slot(client) >= 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        return iter(self._table()[0].tolist())

    def _slot(self, client: int) -> int:
        page, place = divmod(client, PAGE)
        return int(self.pages.get(page, NOBODY)[place])

    def _table(self) -> tuple[np.ndarray, np.ndarray]:
        """(sorted clients, their slots), int64."""
        found = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for page in sorted(self.pages):
            places = np.flatnonzero(self.pages[page] >= 0)
            found[0].append(page * PAGE + places)
            found[1].append(self.pages[page][places].astype(np.int64))
        return np.concatenate(found[0]), np.concatenate(found[1])
