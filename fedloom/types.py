"""The few nouns that every package shares.

Shape letters used throughout: `N` clients in the cohort, `T` steps, `B` examples a batch, `M`
examples of one client, `C` classes, `d` features, `L` lanes.
"""

from typing import Annotated, Any, NamedTuple, Protocol

from torch import Tensor

NonNegative = Annotated[float, "at least 0"]
"""A method's option that has no meaning below 0."""

Params = dict[str, Tensor]
"""A model's trainable leaves, flat: name -> tensor. Running statistics are never in here."""

State = dict[str, Any]
"""A dictionary of tensors or of such dictionaries, no more: what is sent, kept and saved."""

Batch = dict[str, Tensor]
"""`x` [B, ...], `y` [B] and `mask` [B] (1 for an example, 0 for padding)."""


class Context(NamedTuple):
    """What one client may read while it trains."""

    sent: State
    """What the server broadcast this round."""
    client: State
    """What this client remembers from earlier rounds."""
    start: Params
    """Where this round's local training began."""
    trained: tuple[str, ...]
    """Leaves that some epoch trains, in the model's order."""
    lr: Tensor
    """[] the client's learning rate of this round."""
    num_steps: Tensor
    """[] optimizer steps this client takes."""
    num_examples: Tensor
    """[] examples this client trains on."""
    travel: Tensor
    """[] how far those steps carry a leaf under a unit gradient; `lr * num_steps` if plain SGD."""
    buffers: Params
    """Running statistics where this round's local training began."""


class Cohort(NamedTuple):
    """Who reported this round, beside everybody who could have."""

    num_examples: Tensor
    """[N] examples of each reporting client."""
    num_clients: int
    """Clients in the whole population."""
    total_examples: int
    """Examples in the whole population."""


class Task(Protocol):
    """What a method sees of a model and its loss; `fedloom.tasks` has the implementations."""

    num_classes: int
    head: tuple[str, ...]
    """Names of the head's leaves."""
    frozen: tuple[str, ...]
    """Leaves that the model itself says are not to be trained (`requires_grad=False`)."""

    def outputs(self, params: Params, batch: Batch) -> tuple[Tensor, Tensor]:
        """(features [B, d], logits [B, C]) from one pass."""

    def logits(self, params: Params, batch: Batch) -> Tensor:
        """[B, C]."""

    def features(self, params: Params, batch: Batch) -> Tensor:
        """[B, d], the input of the head."""

    def loss(self, params: Params, batch: Batch) -> Tensor:
        """The task's own loss over the batch, []."""

    def mean(self, per_example: Tensor, batch: Batch) -> Tensor:
        """Mean over the examples that aren't padding, []."""

    def teacher(self) -> "Task":
        """The same task for a pass through a model that isn't being trained: evaluation mode."""
