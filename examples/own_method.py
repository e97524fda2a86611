"""A method of your own in one class, checked against FedAvg and then compared with it.

python examples/own_method.py

Options are the fields of the dataclass. Names like `own_method:ServerMomentum(beta=0.9)` work
wherever a method is named, as long as the file's folder can be imported.
"""

from dataclasses import dataclass
from pathlib import Path

import fedloom
from fedloom import Method, tree
from fedloom.types import Cohort, Params, State

OUT = Path("runs/own-method")


@dataclass(frozen=True)
class ServerMomentum(Method):
    """Server momentum: the server keeps a running sum of the rounds' mean deltas.

        v <- beta v + sum_i p_i (w_i - w),    w <- w + server_lr v

    Source: Hsu, Qi, Brown, Measuring the Effects of Non-Identical Data Distribution for Federated
    Visual Classification, 2019, arXiv:1909.06335 (FedAvgM).
    Departs: nothing.
    Equals: FedAvg when beta = 0.
    """

    beta: float = 0.9

    def init_server(self, params: Params) -> State:
        """The velocity starts at rest."""
        return {"params": params, "velocity": tree.zeros_like(params)}

    def aggregate(self, server: State, sums: State, cohort: Cohort) -> State:
        """Add the round's mean delta to the velocity, then move by it."""
        step = tree.mean(sums["delta"], sums["weight"])
        velocity = tree.add(step, server["velocity"], self.beta)
        return {
            "params": tree.add(server["params"], velocity, self.server_lr),
            "velocity": velocity,
        }


def main() -> None:
    """Show that beta = 0 is FedAvg to the bit, then compare three settings."""
    shared = {"data": "fcube", "partition": "fcube_octants", "local_epochs": 2, "rounds": 6}
    plain = fedloom.run(method="fedavg", out=OUT / "fedavg", overwrite=True, **shared)
    still = fedloom.run(
        method="own_method:ServerMomentum(beta=0.0)",
        out=OUT / "beta-0",
        overwrite=True,
        **shared,
    )
    same = all(leaf.equal(still.model[name]) for name, leaf in plain.model.items())
    print(f"beta = 0 gives FedAvg's bits: {same}")
    if not same:
        raise SystemExit("the two models differ")

    comparison = fedloom.compare(
        methods=["fedavg", "own_method:ServerMomentum(beta=0.5)"],
        trials=1,
        reference=False,
        out=OUT / "comparison",
        overwrite=True,
        **shared,
    )
    for name, run in comparison.runs.items():
        print(f"{name:44} {run.accuracy:.3f}")


if __name__ == "__main__":
    main()
