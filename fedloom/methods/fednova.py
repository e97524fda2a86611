"""FedNova."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fedloom import tree
from fedloom.method import Method
from fedloom.types import Batch, Cohort, Context, NonNegative, Params, State, Task


@dataclass(frozen=True)
class FedNova(Method):
    """FedNova: each client's displacement is normalised by how far its optimizer could carry it.

        d_i = (w_i - w) / a_i,    w <- w + server_lr (sum_i p_i a_i) (sum_i p_i d_i)

    `normaliser="momentum"` takes a_i = travel / lr, which for K steps of SGD with momentum rho is
    [K - rho (1 - rho^K) / (1 - rho)] / (1 - rho); `"steps"` takes a_i = K. The local displacements
    are extrapolated by W = (sum p_i a_i)(sum p_i / a_i) >= 1, recorded each round and large under
    quantity skew; `normalise_W` divides by it. `prox_mu` adds FedProx's pull, which
    then counts in a_i.

    Source: Wang et al., Tackling the Objective Inconsistency Problem in Heterogeneous Federated
    Optimization, NeurIPS 2020, arXiv:2007.07481.
    Departs: momentum and pull share one recursion, v <- rho v + 1, a <- (1 - lr mu) a + v, where
    the authors' optimizer adds both; `weighting="batches"` (p_i by batches, not examples) and
    `"steps"` repeat what published NIID-Bench numbers were computed with.
    Equals: FedAvg when all clients take the same number of steps.
    """

    weighting: Literal["examples", "uniform", "batches"] = "examples"  # type: ignore[assignment]
    normaliser: Literal["momentum", "steps"] = "momentum"
    normalise_W: bool = False
    prox_mu: NonNegative = 0.0

    def correct(self, grads: Params, params: Params, ctx: Context) -> Params:
        if not self.prox_mu:
            return grads
        return tree.add(grads, tree.sub(tree.pick(params, grads), ctx.start), self.prox_mu)

    @property
    def pull(self) -> float:
        return self.prox_mu

    def report(self, task: Task, params: Params, data: Batch, ctx: Context) -> tuple[State, State]:
        a = ctx.travel / ctx.lr if self.normaliser == "momentum" else ctx.num_steps
        delta = tree.sub(tree.pick(params, ctx.trained), ctx.start)
        return {"direction": tree.scale(delta, 1 / a), "a": a, "steps": ctx.num_steps}, ctx.client

    def weight(self, report: State, num_examples: Tensor) -> Tensor:
        batches = self.weighting == "batches"
        return report["steps"] if batches else super().weight(report, num_examples)

    def collect(self, report: State, num_examples: Tensor) -> State:
        sums = super().collect(report, num_examples)
        return {**sums, "per a": sums["weight"] / report["a"]}

    def aggregate(self, server: State, sums: State, cohort: Cohort) -> State:
        reach = sums["a"] / sums["weight"]
        if self.normalise_W:
            reach = reach / self._overshoot(sums)
        step = tree.mean(sums["direction"], sums["weight"])
        return {**server, "params": tree.add(server["params"], step, self.server_lr * float(reach))}

    def observe(self, server: State, sums: State, cohort: Cohort) -> dict[str, float]:
        return {"W": float(self._overshoot(sums))}

    @staticmethod
    def _overshoot(sums: State) -> Tensor:
        return sums["a"] * sums["per a"] / sums["weight"] ** 2
