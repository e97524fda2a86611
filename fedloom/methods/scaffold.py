"""SCAFFOLD."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from fedloom import tree
from fedloom.method import Method
from fedloom.types import Batch, Cohort, Context, Params, State, Task


@dataclass(frozen=True)
class Scaffold(Method):
    """SCAFFOLD (option II): control variates cancel each client's drift from the common direction.

        local step    w <- w - lr (g - c_i + c)
        afterwards    c_i+ = c_i - c + (x - w_K) / (K lr),    c <- c + sum_i a_i (c_i+ - c_i)

    `correction="post_step"` corrects outside momentum and divides by K lr; `"gradient"` corrects
    the gradient and divides by the travel of a unit gradient through the same optimizer (mixing
    the two diverges). `c_weights="match"` gives c the weights of the model's mean, a_i = n_i over
    all examples; `"uniform"` is the paper's a_i = 1/N. Sums run over the cohort; c_i starts at 0.

    Source: Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning,
    ICML 2020, arXiv:1910.06378, Alg. 1.
    Departs: c_weights and correction as above. `control_init="network"` and `divisor="cohort"`
    repeat what the published NIID-Bench numbers were computed with, collapse included.
    Equals: FedAvg in the first round and with one client. Invariant: c = sum over all a_i c_i.
    """

    c_weights: Literal["match", "uniform"] = "match"
    correction: Literal["post_step", "gradient"] = "post_step"
    control_init: Literal["zeros", "network"] = "zeros"
    divisor: Literal["population", "cohort"] = "population"

    def init_server(self, params: Params) -> State:
        first = params if self.control_init == "network" else tree.zeros_like(params)
        return {"params": params, "control": first, "first": first}

    def init_client(self, server: State) -> State:
        return {"control": server["first"]}

    def broadcast(self, server: State) -> State:
        return {"params": server["params"], "control": server["control"]}

    def correct(self, grads: Params, params: Params, ctx: Context) -> Params:
        return tree.add(grads, _drift(ctx, grads)) if self.correction == "gradient" else grads

    def after_step(self, params: Params, ctx: Context) -> Params:
        outside = self.correction == "post_step"
        return tree.add(params, _drift(ctx, params), -ctx.lr) if outside else params

    def report(self, task: Task, params: Params, data: Batch, ctx: Context) -> tuple[State, State]:
        delta = tree.sub(tree.pick(params, ctx.trained), ctx.start)
        reach = ctx.travel if self.correction == "gradient" else ctx.num_steps * ctx.lr
        # c_i+ - c_i = -(c + delta / reach)
        turn = tree.scale(tree.add(tree.pick(ctx.sent["control"], delta), delta, 1 / reach), -1.0)
        return {"delta": delta, "control": turn}, {"control": tree.add(ctx.client["control"], turn)}

    def collect(self, report: State, num_examples: Tensor) -> State:
        sums = super().collect(report, num_examples)
        a = sums["weight"] if self.c_weights == "match" else sums["weight"].new_ones(())
        return {**sums, "control": tree.weigh(report["control"], a), "a": a}

    def aggregate(self, server: State, sums: State, cohort: Cohort) -> State:
        everybody = self.total_weight(cohort) if self.c_weights == "match" else cohort.num_clients
        total = sums["a"] if self.divisor == "cohort" else everybody
        control = tree.add(server["control"], tree.mean(sums["control"], total))
        return super().aggregate({**server, "control": control}, sums, cohort)


def _drift(ctx: Context, names: Params) -> Params:
    return tree.sub(tree.pick(ctx.sent["control"], names), ctx.client["control"])
