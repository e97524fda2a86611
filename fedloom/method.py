"""The method interface: small pure functions whose defaults are FedAvg.

A method is a frozen dataclass: its fields are its hyperparameters and it holds no state. Client
hooks are written for ONE client; the engine puts a client axis in front, a plain loop or a
deployed client runs them as they stand. Hooks never touch a device or a seed, and never loop over
clients, epochs or batches.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from fedloom import tree
from fedloom.errors import FedloomError
from fedloom.types import Batch, Cohort, Context, NonNegative, Params, State, Task

Weighting = Literal["examples", "uniform"]


@dataclass(frozen=True)
class Method:
    """FedAvg, in pieces that a subclass replaces one at a time."""

    server_lr: NonNegative = 1.0
    weighting: Weighting = "examples"

    def init_server(self, params: Params) -> State:
        """Initial model -> what the server remembers; `params` is its global model."""
        return {"params": params}

    def init_client(self, server: State) -> State:
        """What a client remembers before it first takes part."""
        return {}

    def broadcast(self, server: State) -> State:
        """What is sent down, and so what is counted."""
        return {"params": server["params"]}

    def start(self, task: Task, sent: State, client: State, data: Batch) -> tuple[Params, State]:
        """Where local training starts, and the client's memory.

        `data` [M, ...] is all that the client trains on; it is formed only for methods that set
        `reads_data`, the rest get an empty dictionary.
        """
        return sent["params"], client

    def trainable(self, names: tuple[str, ...], epoch: int) -> tuple[str, ...]:
        """The leaves that this local epoch trains."""
        return names

    def teach(self, task: Task, batch: Batch, ctx: Context) -> Batch:
        """What models that don't train say of a batch: leaves [B, ...] that `loss` finds in it.

        `task` is in evaluation mode and no gradients are kept. Where every epoch sees the same
        inputs, it is called once a round for all of a client's examples.
        """
        return {}

    def loss(self, task: Task, params: Params, batch: Batch, ctx: Context) -> Tensor:
        """The local objective, []."""
        return task.loss(params, batch)

    def correct(self, grads: Params, params: Params, ctx: Context) -> Params:
        """The gradients that the optimizer sees, before weight decay and momentum."""
        return grads

    def after_step(self, params: Params, ctx: Context) -> Params:
        """The parameters after each optimizer step."""
        return params

    def report(self, task: Task, params: Params, data: Batch, ctx: Context) -> tuple[State, State]:
        """What is sent up, and what the client remembers."""
        return {"delta": tree.sub(tree.pick(params, ctx.trained), ctx.start)}, ctx.client

    def weight(self, report: State, num_examples: Tensor) -> Tensor:
        """[] how much a report counts; the weights of a cohort need not sum to one."""
        return num_examples if self.weighting == "examples" else torch.ones_like(num_examples)

    def collect(self, report: State, num_examples: Tensor) -> State:
        """One report's terms, which are added up over the cohort in float64 as reports arrive.

        The default is each leaf times the report's weight, and the weight itself.
        """
        weight = self.weight(report, num_examples).double()
        return {**tree.weigh(report, weight), "weight": weight}

    def aggregate(self, server: State, sums: State, cohort: Cohort) -> State:
        """Sums of what `collect` gave -> the server's next state."""
        step = tree.mean(sums["delta"], sums["weight"])
        return {**server, "params": tree.add(server["params"], step, self.server_lr)}

    def observe(self, server: State, sums: State, cohort: Cohort) -> dict[str, float]:
        """Numbers worth a line in the record of the round."""
        return {}

    def total_weight(self, cohort: Cohort) -> float:
        """What the weights would sum to if everybody took part."""
        whole = cohort.total_examples if self.weighting == "examples" else cohort.num_clients
        return float(whole)

    def personal(self, params: Params, client: State) -> Params:
        """The model that a client with this memory would serve, given the global one."""
        return params

    @property
    def reads_data(self) -> bool:
        """Whether `start` or `report` look at the client's data as a whole."""
        return False

    @property
    def teaches(self) -> bool:
        """Whether `teach` gives anything."""
        return type(self).teach is not Method.teach

    @property
    def needs_each(self) -> bool:
        """Whether `aggregate` gets the cohort's terms side by side, leaves [N, ...], not summed.

        For medians or comparisons of clients; the cohort's reports are then held all at once.
        """
        return False

    @property
    def pull(self) -> float:
        """Strength of a linear pull to `start` inside `correct`; `Context.travel` counts it in."""
        return 0.0


@contextmanager
def calling(method: Method, hook: str) -> Iterator[None]:
    """Make any error inside name the method and the hook that it came from."""
    try:
        yield
    except FedloomError:
        raise
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        raise FedloomError(
            f"{type(method).__name__}.{hook}: {type(error).__name__}: {first}"
        ) from error


def check_state(state: State, what: str) -> None:
    """Raise TypeError unless `state` is a dictionary of tensors or of such dictionaries."""
    if not isinstance(state, dict):
        raise TypeError(f"{what} is a {type(state).__name__}; expected a dictionary of tensors")
    for key, value in state.items():
        if isinstance(value, dict):
            check_state(value, f"{what}, {key!r}")
        elif not isinstance(value, Tensor):
            raise TypeError(f"{what}, {key!r} is a {type(value).__name__}; expected a tensor")
