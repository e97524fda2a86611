"""Local-only training."""

from fedloom.method import Method
from fedloom.types import Batch, Cohort, Context, Params, State, Task


class Local(Method):
    """Local only: every client trains its own model and sends nothing.

        w_i <- w_i after its own local work, from the common initial model on

    Source: the usual baseline; no exchange, so its figures are means over the clients' own models.
    Equals: FedAvg with one client, for every client by itself.
    """

    def init_client(self, server: State) -> State:
        return {"own": server["params"]}

    def broadcast(self, server: State) -> State:
        return {}

    def start(self, task: Task, sent: State, client: State, data: Batch) -> tuple[Params, State]:
        return client["own"], client

    def report(self, task: Task, params: Params, data: Batch, ctx: Context) -> tuple[State, State]:
        return {}, {"own": params}

    def aggregate(self, server: State, sums: State, cohort: Cohort) -> State:
        return server

    def personal(self, params: Params, client: State) -> Params:
        return client["own"]
