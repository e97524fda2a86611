"""Label and quantity skew with both margins exact."""

from dataclasses import dataclass

from fedloom.partition import checks
from fedloom.partition.dirichlet import log_gammas, softmax
from fedloom.partition.margins import fit, round_table
from fedloom.partition.problem import Draw, Problem, deal
from fedloom.partition.strategies.quantity_dirichlet import QuantityDirichlet
from fedloom.partition.strategy import Retrying


@dataclass(frozen=True)
class LabelQuantity(Retrying):
    """Sizes from one Dirichlet draw, label shares from another for each client.

    The table of clients by classes that is nearest to those shares and has exactly the drawn sizes
    and the data's class counts, by iterative proportional fitting and controlled rounding.
    Source: own construction; it replaces sequential draws that stall when a class runs out.
    """

    max_tries: int = 1_000_000
    alpha_label: float = 0.5
    alpha_size: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha_label", "alpha_size"):
            object.__setattr__(self, name, checks.positive(name, getattr(self, name)))

    @staticmethod
    def _small_rules() -> tuple[str, ...]:
        return ("retry", "floor", "allow", "error")

    def split(self, problem: Problem) -> Draw:
        """Draw sizes and shares, fit the table, deal the rows."""
        sizes, tries = QuantityDirichlet(
            min_size=self.min_size,
            max_tries=self.max_tries,
            on_small=self.on_small,
            alpha=self.alpha_size,
        ).sizes(problem)
        shape = (problem.num_clients, problem.num_classes)
        shares = softmax(log_gammas(problem.stream("classes"), self.alpha_label, shape))
        table = round_table(fit(shares, sizes, problem.class_counts), sizes, problem.class_counts)
        return Draw(*deal(problem, table, problem.shuffled), tries)
