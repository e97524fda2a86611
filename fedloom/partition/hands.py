"""Which labels each client holds, as bool [N, C] with k true in a row."""

import random
from collections.abc import Callable

import numpy as np

from fedloom.partition.problem import Problem

Rule = Callable[[np.random.RandomState, int, int, int], np.ndarray]
CHUNK = 2**20  # random numbers at once, to bound memory


def first_fixed(
    rng: np.random.RandomState, num_clients: int, num_classes: int, k: int
) -> np.ndarray:
    """Label i mod C for client i, and k - 1 others uniformly."""
    return _smallest(rng, num_clients, num_classes, k, fixed=True)


def uniform(rng: np.random.RandomState, num_clients: int, num_classes: int, k: int) -> np.ndarray:
    """Any k labels uniformly; some class may be held by nobody."""
    return _smallest(rng, num_clients, num_classes, k, fixed=False)


def cyclic(rng: np.random.RandomState, num_clients: int, num_classes: int, k: int) -> np.ndarray:
    """Labels i, i + 1, ..., i + k - 1 modulo C; nothing is drawn."""
    held = np.zeros((num_clients, num_classes), bool)
    labels = (np.arange(num_clients)[:, None] + np.arange(k)) % num_classes  # [N, k]
    np.put_along_axis(held, labels, True, axis=1)
    return held


def balanced(rng: np.random.RandomState, num_clients: int, num_classes: int, k: int) -> np.ndarray:
    """Cards dealt from a deck with each class equally often to within one, no hand with a repeat.

    A class with as many cards left as there are hands must be dealt now; the other labels of a
    hand are drawn in proportion to the cards left. So the deck always comes out even.
    """
    base, extra = divmod(num_clients * k, num_classes)
    left = np.full(num_classes, base)
    left[rng.permutation(num_classes)[:extra]] += 1
    held = np.zeros((num_clients, num_classes), bool)
    for client in range(num_clients):
        with np.errstate(divide="ignore"):
            waiting = -np.log1p(-rng.random_sample(num_classes)) / left
        waiting[left == num_clients - client] = -1.0
        waiting[left == 0] = np.inf
        hand = np.argsort(waiting, kind="stable")[:k]
        held[client, hand] = True
        left[hand] -= 1
    return held


RULES: dict[str, Rule] = {
    "first_fixed": first_fixed,
    "random": uniform,
    "cyclic": cyclic,
    "balanced": balanced,
}


def repair(rng: np.random.RandomState, held: np.ndarray, keep_first: bool) -> int:
    """Give each unheld class to a random holder of the commonest class, in place of that one.

    With `keep_first` client i never loses label i mod C. Changes `held`; gives the replacements.
    """
    num_clients, num_classes = held.shape
    free = np.ones(held.shape, bool)
    if keep_first:
        free[np.arange(num_clients), np.arange(num_clients) % num_classes] = False
    changed = 0
    for c in np.flatnonzero(held.sum(0) == 0).tolist():
        common = int(held.sum(0).argmax())
        candidates = np.flatnonzero(held[:, common] & free[:, common])
        client = int(candidates[rng.randint(len(candidates))])
        held[client, [common, c]] = False, True
        changed += 1
    return changed


def legacy(rng: random.Random, problem: Problem, k: int) -> np.ndarray:
    """As `first_fixed`, drawn in the order of NIID-Bench's code."""
    held = np.zeros((problem.num_clients, problem.num_classes), bool)
    for client in range(problem.num_clients):
        held[client, client % problem.num_classes] = True
        while held[client].sum() < k:
            held[client, rng.randint(0, problem.num_classes - 1)] = True
    return held


def _smallest(
    rng: np.random.RandomState, num_clients: int, num_classes: int, k: int, fixed: bool
) -> np.ndarray:
    """The k smallest of C random keys in each row; a fixed label's key is below all others."""
    held = np.zeros((num_clients, num_classes), bool)
    rows = max(1, CHUNK // num_classes)
    for first in range(0, num_clients, rows):
        ids = np.arange(first, min(first + rows, num_clients))
        keys = rng.random_sample((len(ids), num_classes))
        if fixed:
            keys[np.arange(len(ids)), ids % num_classes] = -1.0
        hand = np.argsort(keys, axis=1, kind="stable")[:, :k]
        np.put_along_axis(held[first : first + rows], hand, True, axis=1)
    return held
