"""Which clients take part in a round.

A cohort depends on (seed, round) and the population alone, so every method sees the same one.
What a sampler needs of the whole population is computed once a run; a round then costs what its
cohort costs, whatever the population (`by_size` alone looks at every client in every round).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedloom.errors import ConfigError, nearest
from fedloom.rng import stream
from fedloom.spec import Spec, parse


@dataclass(frozen=True, eq=False)
class Population:
    """All clients of a run, and what samplers ask of them more than once."""

    seed: int
    sizes: np.ndarray
    """int64 [N], training rows of each client."""

    @cached_property
    def eligible(self) -> np.ndarray:
        """int64, sorted ids of the clients with data."""
        return np.flatnonzero(self.sizes > 0)

    @cached_property
    def turns(self) -> np.ndarray:
        """The same ids in the random order of `round_robin`."""
        return self.eligible[stream(self.seed, "turns").permutation(len(self.eligible))]

    @cached_property
    def log_sizes(self) -> np.ndarray:
        """float64, of the eligible clients."""
        return np.log(self.sizes[self.eligible])


Sampler = Callable[[Population, int, int], np.ndarray]
"""(population, round, cohort size) -> sorted client ids."""


def cohort_size(num_clients: int, participation: float = 1.0, cohort: int | None = None) -> int:
    """Clients a round: the cohort asked for, or participation * N rounded half up, at least one.

    >>> cohort_size(100, 0.29), cohort_size(10, 0.01)
    (29, 1)
    """
    if cohort is not None:
        return cohort
    return max(1, math.floor(participation * num_clients + 0.5 + 1e-9))


def uniform(population: Population, round: int, count: int) -> np.ndarray:
    """Every client with data is equally likely; without replacement."""
    eligible = population.eligible
    chosen = _distinct(stream(population.seed, "cohort", round), len(eligible), count)
    return eligible[np.sort(chosen)]


def by_size(population: Population, round: int, count: int) -> np.ndarray:
    """Clients are drawn without replacement with chances in proportion to their examples.

    Gumbel keys: the `count` largest of log n_i + Gumbel noise (Efraimidis and Spirakis, 2006).
    Large clients are preferred twice if the method also weighs by examples; `weighting="uniform"`
    avoids it. Draws one key for every client in each round.
    """
    eligible = population.eligible
    draw = stream(population.seed, "cohort", round)
    keys = population.log_sizes + draw.gumbel(size=len(eligible))
    return np.sort(eligible[np.argsort(-keys, kind="stable")[:count]])


def round_robin(population: Population, round: int, count: int) -> np.ndarray:
    """Clients take turns in one fixed random order; nobody waits longer than N / cohort rounds."""
    order = population.turns
    turns = (np.arange(count) + (round - 1) * count) % len(order)
    return np.sort(order[np.unique(turns)])


def _distinct(draw: np.random.RandomState, bound: int, count: int) -> np.ndarray:
    """`count` different numbers below `bound`, every such set equally likely.

    The first different values of a stream of draws; of more than half, those left out are drawn.
    """
    if 2 * count > bound:
        stays = np.ones(bound, bool)
        stays[_distinct(draw, bound, bound - count)] = False
        return np.flatnonzero(stays)
    found = np.empty(0, np.int64)
    while len(found) < count:
        drawn = np.concatenate([found, draw.randint(bound, size=count, dtype=np.int64)])
        found = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return found[:count]


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
