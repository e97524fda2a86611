"""Gaussian noise on a client's features: its level grows with the client's number."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fedloom.rng import torch_stream

Refresh = Literal["fixed", "each_access"]

TEST_BLOCK = 500  # rows of the test set whose noise is drawn at once


class Noise:
    """Adds N(0, std_i^2) to every value of client i, std in units of the features.

    `fixed`: the noise of a row is drawn once and stays, so a client's data are simply other data;
    it costs one float32 copy of the noisy clients' rows. `each_access`: new noise for every batch,
    which acts as augmentation (what the published NIID-Bench numbers used).
    """

    def __init__(
        self,
        std: Sequence[float] | np.ndarray,
        sizes: Sequence[int],
        seed: int,
        refresh: Refresh = "fixed",
    ) -> None:
        self.std = np.asarray(std, float)
        self.sizes = sizes
        self.seed = seed
        self.refresh = refresh
        self.active = bool((self.std > 0).any())
        self._kept: dict[int, Tensor] = {}

    def draw(
        self, client: int, round: int, step: int, position: Tensor, shape: tuple[int, ...]
    ) -> Tensor:
        """Noise [B, ...] for the rows at `position` [B] among the client's own."""
        std = float(self.std[client])
        if self.refresh == "each_access":
            source = torch_stream(self.seed, "noise", client, round, step)
            return std * torch.randn((len(position), *shape), generator=source)
        if client not in self._kept:
            source = torch_stream(self.seed, "noise", client)
            size = (int(self.sizes[client]), *shape)
            self._kept[client] = std * torch.randn(size, generator=source)
        return self._kept[client][position]

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
