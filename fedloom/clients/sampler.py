"""Which clients take part in a round.

A cohort depends on (seed, round) and the population alone, so every method sees the same one.
"""

import math
from collections.abc import Callable

import numpy as np

from fedloom.errors import ConfigError, nearest
from fedloom.rng import stream
from fedloom.spec import Spec, parse

Sampler = Callable[[int, int, np.ndarray, int], np.ndarray]
"""(seed, round, sizes [N], cohort size) -> sorted client ids."""


def cohort_size(num_clients: int, participation: float = 1.0, cohort: int | None = None) -> int:
    """Clients a round: the cohort asked for, or participation * N rounded half up, at least one.

    >>> cohort_size(100, 0.29), cohort_size(10, 0.01)
    (29, 1)
    """
    if cohort is not None:
        return cohort
    return max(1, math.floor(participation * num_clients + 0.5 + 1e-9))


def uniform(seed: int, round: int, sizes: np.ndarray, count: int) -> np.ndarray:
    """Every client with data is equally likely; without replacement."""
    eligible = np.flatnonzero(sizes > 0)
    chosen = stream(seed, "cohort", round).permutation(len(eligible))[:count]
    return np.sort(eligible[chosen])


def by_size(seed: int, round: int, sizes: np.ndarray, count: int) -> np.ndarray:
    """Clients are drawn without replacement with chances in proportion to their examples.

    Gumbel keys: the `count` largest of log n_i + Gumbel noise (Efraimidis and Spirakis, 2006).
    Large clients are preferred twice if the method also weighs by examples; `weighting="uniform"`
    avoids it.
    """
    eligible = np.flatnonzero(sizes > 0)
    keys = np.log(sizes[eligible]) + stream(seed, "cohort", round).gumbel(size=len(eligible))
    return np.sort(eligible[np.argsort(-keys, kind="stable")[:count]])


def round_robin(seed: int, round: int, sizes: np.ndarray, count: int) -> np.ndarray:
    """Clients take turns in one fixed random order; nobody waits longer than N / cohort rounds."""
    eligible = np.flatnonzero(sizes > 0)
    order = stream(seed, "turns").permutation(len(eligible))
    turns = (np.arange(count) + (round - 1) * count) % len(eligible)
    return np.sort(eligible[order[np.unique(turns)]])


_SAMPLERS: dict[str, Sampler] = {
    sampler.__name__: sampler for sampler in (uniform, by_size, round_robin)
}


def names() -> dict[str, str]:
    """Every sampler -> the first line of its docstring."""
    return {name: (f.__doc__ or "").splitlines()[0] for name, f in _SAMPLERS.items()}


def make(spec: str | Spec) -> Sampler:
    """The sampler of that name; none takes options."""
    read = parse(spec, "sampler")
    if read.name not in _SAMPLERS:
        raise ConfigError(f"unknown sampler {read.name!r}; {nearest(read.name, _SAMPLERS)}")
    if read.options:
        raise ConfigError(f"sampler {read.name!r} takes no options; it got {sorted(read.options)}")
    return _SAMPLERS[read.name]
