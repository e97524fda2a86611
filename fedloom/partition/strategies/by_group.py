"""Natural clients: rows that belong together stay together."""

import heapq
from dataclasses import dataclass

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import apportion, checks
from fedloom.partition.problem import Draw, Problem, collect, offsets_of, ranges, stable_order
from fedloom.partition.strategy import Strategy, legacy_state


@dataclass(frozen=True)
class ByGroup(Strategy):
    """All rows of a group (a writer, a user, a site) at one client, groups dealt at random.

    Clients get equally many groups to within one; with `balance_rows` the largest groups go first,
    each to the client with the fewest rows. Test rows follow their groups.
    Source: the LEAF benchmark's writers, arXiv:1812.01097, as in Li et al., arXiv:2102.02079.
    """

    balance_rows: bool = False

    def __post_init__(self) -> None:
        checks.flag("balance_rows", self.balance_rows)

    def split(self, problem: Problem) -> Draw:
        """Permute the sorted ids, cut the list of ids, and take all rows of each."""
        groups, sizes = _groups(problem)
        turn = problem.stream("groups").permutation(len(sizes))
        if self.balance_rows:
            owner = _lightest(turn, sizes, problem.num_clients)
        else:
            owner = _dealt(turn, problem.num_clients)
        order, offsets = collect(None, owner[groups], problem.num_clients)
        return Draw(order, offsets, facts=_facts(problem, owner))

    def split_legacy(self, problem: Problem) -> Draw:
        """One permutation of the groups, cut; a client's rows come group by group."""
        if self.balance_rows:
            return super().split_legacy(problem)
        groups, sizes = _groups(problem)
        turn = legacy_state(problem).permutation(len(sizes))
        owner = _dealt(turn, problem.num_clients)
        by_id = stable_order(groups, len(sizes))
        order = by_id[ranges(offsets_of(sizes)[:-1][turn], sizes[turn])]
        held = np.bincount(owner, sizes, problem.num_clients).astype(np.int64)
        return Draw(order, offsets_of(held), facts=_facts(problem, owner))

    @classmethod
    def match(cls, facts: dict[str, np.ndarray], counts: np.ndarray, test: Problem) -> Draw:
        """Test rows go where the training rows of their group are; unknown groups nowhere."""
        if test.groups is None or test.group_ids is None:
            raise PartitionError(
                "by_group: the test rows need their group ids too; pass groups=..."
            )
        known = {str(name): owner for name, owner in zip(facts["ids"], facts["owner"], strict=True)}
        place = np.array([known.get(str(name), -1) for name in test.group_ids])
        owner = place[test.groups]
        rows = np.flatnonzero(owner >= 0)
        unseen = int((place < 0).sum())
        warnings = (f"{unseen} groups have test rows but no training rows",) if unseen else ()
        return Draw(*collect(rows, owner[rows], len(counts)), warnings=warnings)


def _groups(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Group positions [n] and rows a group [G], checked."""
    if problem.groups is None:
        raise PartitionError(
            "by_group needs a group id for every row (writer, user, site); these data have none"
        )
    sizes = np.bincount(problem.groups)
    if problem.num_clients > len(sizes):
        raise PartitionError(
            f"by_group: {problem.num_clients} clients, but only {len(sizes)} groups; use at most "
            f"{len(sizes)} clients"
        )
    return problem.groups, sizes


def _facts(problem: Problem, owner: np.ndarray) -> dict[str, np.ndarray]:
    assert problem.group_ids is not None
    return {"ids": problem.group_ids, "owner": owner}


def _dealt(turn: np.ndarray, num_clients: int) -> np.ndarray:
    owner = np.empty(len(turn), np.int64)
    owner[turn] = np.repeat(np.arange(num_clients), apportion.even(len(turn), num_clients))
    return owner


def _lightest(turn: np.ndarray, sizes: np.ndarray, num_clients: int) -> np.ndarray:
    """Client of each group: groups by falling size, ties in the order of `turn`."""
    owner = np.empty(len(turn), np.int64)
    held = list(range(num_clients))  # rows * N + client: one number orders by rows, then by client
    for group in turn[np.argsort(-sizes[turn], kind="stable")].tolist():
        owner[group] = held[0] % num_clients
        heapq.heapreplace(held, held[0] + int(sizes[group]) * num_clients)
    return owner
