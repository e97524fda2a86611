"""Rows at random."""

from dataclasses import dataclass

import numpy as np

from fedloom.partition import apportion, checks
from fedloom.partition.problem import Draw, Problem, collect, offsets_of, stable_order
from fedloom.partition.strategy import Strategy, legacy_state


@dataclass(frozen=True)
class Iid(Strategy):
    """Rows at random in blocks whose sizes differ by at most one.

    Classes are spread by chance; with `stratified` each class, too, is spread to within one row.
    Source: Li et al., Federated Learning on Non-IID Data Silos, ICDE 2022, arXiv:2102.02079.
    """

    stratified: bool = False

    def __post_init__(self) -> None:
        checks.flag("stratified", self.stratified)

    def split(self, problem: Problem) -> Draw:
        """Permute, then cut; stratified: sort the permuted rows by class and deal them in turn."""
        rows = problem.stream("assign").permutation(problem.num_rows)
        if not self.stratified:
            return _cut(rows, problem)
        rows = rows[stable_order(problem.y[rows], problem.num_classes)]
        return Draw(*collect(rows, np.arange(len(rows)) % problem.num_clients, problem.num_clients))

    def split_legacy(self, problem: Problem) -> Draw:
        """One permutation, cut."""
        if self.stratified:
            return super().split_legacy(problem)
        return _cut(legacy_state(problem).permutation(problem.num_rows), problem)


def _cut(rows: np.ndarray, problem: Problem) -> Draw:
    return Draw(rows, offsets_of(apportion.even(len(rows), problem.num_clients)))
