"""One seed, many independent streams, each named by what it is for.

A stream depends on its name alone, never on the order of calls, the executor or the number of
workers. Streams are `numpy.random.RandomState`, whose output is frozen across NumPy releases.
"""

import hashlib

import numpy as np
import torch


def words(seed: int, *key: object) -> np.ndarray:
    """Eight 32-bit words, uint32 [8], that only this seed and this key give."""
    name = "|".join(["fedloom", "v1", str(int(seed)), *map(str, key)])
    return np.frombuffer(hashlib.sha256(name.encode()).digest(), dtype="<u4")


def stream(seed: int, *key: object) -> np.random.RandomState:
    """A NumPy generator for one purpose.

    >>> int(stream(0, "sample", 3).randint(1000)) == int(stream(0, "sample", 3).randint(1000))
    True
    """
    return np.random.RandomState(words(seed, *key))


def torch_stream(seed: int, *key: object) -> torch.Generator:
    """A torch generator for one purpose, on the CPU."""
    low, high = (int(word) for word in words(seed, *key)[:2])
    return torch.Generator().manual_seed((high << 32 | low) & (2**63 - 1))
