"""FedProx."""

from dataclasses import dataclass

from fedloom import tree
from fedloom.method import Method
from fedloom.types import Context, NonNegative, Params


@dataclass(frozen=True)
class FedProx(Method):
    """FedProx: a proximal pull keeps local training near where it started.

        loss = task + (mu / 2) |w - start|^2

    The pull's gradient mu (w - start) is added in closed form, so that no graph of norms is built;
    it goes through momentum like any other gradient.

    Source: Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020,
    arXiv:1812.06127.
    Departs: exact local epochs stand in for the paper's inexact solves.
    Equals: FedAvg when mu = 0.

    >>> from fedloom.testing import at, began
    >>> FedProx(mu=0.5).correct(grads=at(-2.0), params=at(1.0), ctx=began(0.0))  # -2 + 0.5 (1 - 0)
    {'w': tensor(-1.5000)}
    """

    mu: NonNegative = 0.01

    def correct(self, grads: Params, params: Params, ctx: Context) -> Params:
        return tree.add(grads, tree.sub(tree.pick(params, grads), ctx.start), self.mu)

    @property
    def pull(self) -> float:
        return self.mu
