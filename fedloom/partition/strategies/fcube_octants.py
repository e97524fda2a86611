"""Feature skew of the FCUBE points: two opposite octants a client."""

from dataclasses import dataclass

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition.problem import Draw, Problem, collect, stable_order
from fedloom.partition.strategy import Strategy


@dataclass(frozen=True)
class FcubeOctants(Strategy):
    """Points of a cube around 0 by octant: each client holds an octant and the opposite one.

    Clients 0 to 3 hold the points with (x1 x2 > 0, x1 x3 > 0), (> 0, < 0), (< 0, > 0), (< 0, < 0);
    a coordinate of 0 counts as positive. Needs 1, 2, 4 or a multiple of 4 clients: 2 clients hold
    two pairs each, more than 4 share a pair evenly and at random, octant by octant.
    Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, arXiv:2102.02079.
    """

    def split(self, problem: Problem) -> Draw:
        """Signs of the coordinates name the pair; within a pair the points are dealt in turn."""
        positive = _points(problem) >= 0
        pair = 2 * (positive[:, 0] != positive[:, 1]) + (positive[:, 0] != positive[:, 2])
        n, num_clients = problem.num_rows, problem.num_clients
        if num_clients <= 4:
            return Draw(*collect(np.arange(n), pair * num_clients // 4, num_clients))
        share = num_clients // 4
        rows = problem.stream("assign").permutation(n)
        rows = rows[stable_order(2 * pair[rows] + positive[rows, 0], 8)]
        start = np.searchsorted(pair[rows], np.arange(4))
        turn = (np.arange(n) - start[pair[rows]]) % share
        return Draw(*collect(rows, pair[rows] * share + turn, num_clients))

    def split_legacy(self, problem: Problem) -> Draw:
        """The same: which octant a point lies in is no matter of chance."""
        return self.split(problem)

    @classmethod
    def match(cls, facts: dict[str, np.ndarray], counts: np.ndarray, test: Problem) -> Draw:
        """The same octants of the test points."""
        return cls().split(test)


def _points(problem: Problem) -> np.ndarray:
    """Coordinates [n, 3], checked, as is the number of clients."""
    if problem.num_clients not in (1, 2) and problem.num_clients % 4:
        raise PartitionError(
            "fcube_octants needs 1, 2, 4 or a multiple of 4 clients, because there are four pairs "
            f"of octants; {problem.num_clients} were asked for"
        )
    if problem.x is None:
        raise PartitionError("fcube_octants looks at the points themselves; pass x=... [n, 3]")
    if problem.x.shape != (problem.num_rows, 3):
        raise PartitionError(
            f"fcube_octants needs points of shape ({problem.num_rows}, 3), not {problem.x.shape}"
        )
    if not np.isfinite(problem.x).all():
        raise PartitionError("fcube_octants: some coordinate is missing or infinite")
    return problem.x
