"""Examples in memory, and the tensors that batches of them become.

The data lie in memory once, as they came (8-bit images, sparse rows); a batch is turned into floats
only when it is formed. Clients hold row numbers.
"""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedloom.clients.batches import Plan
from fedloom.clients.noise import Noise
from fedloom.rng import stream
from fedloom.types import Batch

PAD = 4  # pixels of reflection around an image before a random crop


class Examples:
    """Rows of a data set: x as tensor [n, ...] or CSR matrix, y [n]."""

    def __init__(self, x: Any, y: np.ndarray) -> None:
        self.sparse = not isinstance(x, np.ndarray)
        self.x: Any = x if self.sparse else torch.from_numpy(_writable_view(x))
        self.y = torch.from_numpy(_writable_view(y))

    def __len__(self) -> int:
        return len(self.y)

    def to(self, device: torch.device) -> "Examples":
        """The same examples on a device; sparse rows stay here until they form a batch."""
        there = copy(self)
        there.y = self.y.to(device)
        there.x = self.x if self.sparse else self.x.to(device)
        return there

    @property
    def values_per_row(self) -> int:
        """Numbers in one example."""
        return math.prod(self.x.shape[1:])

    def take(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(x float32 [n, ...], y int64 [n]); 8-bit values become [0, 1]."""
        if self.sparse:
            dense = self.x[rows.cpu().numpy()].toarray()
            return torch.from_numpy(dense).to(rows.device), self.y[rows]
        x = self.x.index_select(0, rows)  # copies whole rows, where x[rows] goes by elements
        x = x.float().div_(255) if x.dtype == torch.uint8 else x
        if x.dim() == 4:
            x = x.contiguous(memory_format=torch.channels_last)  # a third off a CNN's step
        return x, self.y.index_select(0, rows)


def _writable_view(array: np.ndarray) -> np.ndarray:
    """The same memory, flagged writable: torch warns about read-only arrays it never writes."""
    view = np.ascontiguousarray(array).view()
    if not view.flags.writeable:
        interface = dict(view.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        holder = _Borrowed(interface, view)
        view = np.asarray(holder)
    return view


class _Borrowed:
    """An array interface that keeps its owner alive."""

    def __init__(self, interface: dict[str, Any], owner: np.ndarray) -> None:
        self.__array_interface__ = interface
        self._owner = owner


@dataclass(frozen=True)
class Augment:
    """Random horizontal flips, and crops of an image reflected at its border by four pixels."""

    flip: bool = False
    crop: bool = False

    def draw(self, plan: Plan, seed: int, round: int, client: int) -> Tensor | None:
        """One client's choices of one round: [T, B, 3] = (top, left, flip), or None."""
        if not (self.flip or self.crop):
            return None
        source = stream(seed, "augment", round, client)
        choices = np.zeros((*plan.index.shape, 3), np.int64)
        if self.crop:
            choices[..., :2] = source.randint(2 * PAD + 1, size=(*plan.index.shape, 2))
        if self.flip:
            choices[..., 2] = source.randint(2, size=plan.index.shape)
        return torch.from_numpy(choices)

    def apply(self, x: Tensor, choices: Tensor) -> Tensor:
        """x [n, c, h, w] and choices [n, 3] -> [n, c, h, w]."""
        n, channels, height, width = x.shape
        rows, columns = (torch.arange(size, device=x.device) for size in (height, width))
        top, left, flip = choices.unbind(-1)
        if self.crop:
            x = torch.nn.functional.pad(x, [PAD] * 4, mode="reflect")
        columns = torch.where(flip[:, None] == 1, columns.flip(0), columns)  # [n, w]
        down, across = top[:, None] + rows, left[:, None] + columns  # [n, h], [n, w]
        pick = (
            torch.arange(n, device=x.device)[:, None, None, None],
            torch.arange(channels, device=x.device)[:, None, None],
            down[:, None, :, None],
            across[:, None, None, :],
        )
        return x[pick]


NO_AUGMENT = Augment()


@dataclass(frozen=True)
class Feed:
    """One client's batches of one round."""

    rows: Tensor
    """int64 [T, B] rows of the data set."""
    position: Tensor
    """int64 [T, B] positions among the client's own rows."""
    count: Tensor
    """int64 [T]."""
    choices: Tensor | None
    """Augmentation, [T, B, 3]."""
    client: int
    round: int
    taught: Batch = field(default_factory=dict)
    """What teachers say of the client's examples, leaves [M or more, ...] by position."""


def form(
    examples: Examples,
    feeds: Sequence[Feed],
    starts: Sequence[int],
    steps: int,
    augment: Augment,
    noise: Noise,
) -> Batch:
    """The next `steps` batches of every lane, lane l from `starts[l]` on: leaves [T, L, B, ...].

    Padding is included, with mask 0.
    """
    spans = [slice(start, start + steps) for start in starts]
    lanes = list(zip(feeds, spans, strict=True))
    rows = torch.stack([feed.rows[span] for feed, span in lanes], 1)  # [T, L, B]
    shape, size = rows.shape, rows.shape[-1]
    x, y = examples.take(rows.flatten())
    if feeds[0].choices is not None:
        picked = [feed.choices[span] for feed, span in lanes if feed.choices is not None]
        x = augment.apply(x, torch.stack(picked, 1).flatten(0, 2))
    if noise.active:
        at = [(feed, span.start + t) for t in range(steps) for feed, span in lanes]
        one = tuple(x.shape[1:])
        drawn = [noise.draw(f.client, f.round, t, f.position[t], one) for f, t in at]
        x = x + torch.cat(drawn).to(x.device)
    count = torch.stack([feed.count[span] for feed, span in lanes], 1)  # [T, L]
    mask = (torch.arange(size, device=x.device) < count[..., None]).to(x.dtype)
    taught = {
        name: torch.stack([feed.taught[name][feed.position[span]] for feed, span in lanes], 1)
        for name in feeds[0].taught
    }
    return {"x": x.unflatten(0, shape), "y": y.view(shape), "mask": mask, **taught}


def steps_at_once(examples: Examples, lanes: int, batch_size: int) -> int:
    """How many steps' batches to form together: as many as make about 16 MB."""
    return max(1, 2**22 // (lanes * batch_size * examples.values_per_row))
