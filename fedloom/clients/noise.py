"""Gaussian noise on a client's features: its level grows with the client's number."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fedloom.rng import torch_stream

Refresh = Literal["fixed", "each_access"]

TEST_BLOCK = 500  # rows of the test set whose noise is drawn at once
KEPT_VALUES = 2**28  # float32 values of fixed noise kept, 1 GiB; what is let go is drawn again


class Noise:
    """Adds N(0, std_i^2) to every value of client i, std in units of the features.

    `fixed`: the noise of a row is drawn once and stays, so a client's data are simply other data;
    it costs one float32 copy of the noisy clients' rows, of at most 1 GiB: beyond that the clients
    longest not seen are let go and drawn again when they come back. `each_access`: new noise for
    every batch, which acts as augmentation (what the published NIID-Bench numbers used).
    """

    def __init__(
        self,
        std: Sequence[float] | np.ndarray,
        sizes: Sequence[int] | np.ndarray,
        seed: int,
        refresh: Refresh = "fixed",
    ) -> None:
        self.std = np.asarray(std, float)
        self.sizes = sizes
        self.seed = seed
        self.refresh = refresh
        self.active = bool((self.std > 0).any())
        self._kept: dict[int, Tensor] = {}  # the client longest not seen comes first
        self._values = 0

    def draw(
        self, client: int, round: int, step: int, position: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        """Noise [B, ...] for the rows at `position` [B] among the client's own."""
        std = float(self.std[client])
        if self.refresh == "each_access":
            source = torch_stream(self.seed, "noise", client, round, step)
            return std * torch.randn((len(position), *shape), generator=source)
        kept = self._kept.pop(client, None)
        if kept is None:
            source = torch_stream(self.seed, "noise", client)
            size = (int(self.sizes[client]), *shape)
            kept = std * torch.randn(size, generator=source)
            self._values += kept.numel()
        self._kept[client] = kept
        while self._values > KEPT_VALUES and len(self._kept) > 1:
            self._values -= self._kept.pop(next(iter(self._kept))).numel()
        return kept[position]

    def test(self, client: int, round: int, first: int, shape: tuple[int, ...]) -> Tensor:
        """Noise for the block of the test set that starts at row `first`, as client i sees it.

        It is drawn in blocks of a size of its own, so that a row's noise is the same whatever the
        batch size of the evaluation.
        """
        when = round if self.refresh == "each_access" else 0
        rows, size = shape[0], (TEST_BLOCK, *shape[1:])
        blocks = range(first // TEST_BLOCK, -(-(first + rows) // TEST_BLOCK))
        sources = [torch_stream(self.seed, "test_noise", client, when, b) for b in blocks]
        drawn = torch.cat([torch.randn(size, generator=source) for source in sources])
        skip = first % TEST_BLOCK
        return float(self.std[client]) * drawn[skip : skip + rows]


NO_NOISE = Noise([], [], 0)
