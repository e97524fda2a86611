"""A network together with the names of its head."""

from collections.abc import Callable
from dataclasses import dataclass, field

from torch import nn


@dataclass(frozen=True)
class Model:
    """A network [B, *input_shape] -> logits [B, C], and which of its leaves are the head."""

    name: str
    """The specification it was made from, options included."""
    net: nn.Module
    head: tuple[str, ...]
    """Names of the head's leaves, as in `net.named_parameters()` and in that order."""
    head_module: str
    """Dotted name of the module whose input is the features: the first of the head to be called."""
    build: Callable[[], nn.Module] = field(repr=False)
    """Makes the same network anew, drawing its weights from torch's global generator."""
    notes: tuple[str, ...] = ()
    """What was chosen without being asked for, in sentences."""

    @property
    def body_is_separate(self) -> bool:
        """Whether the network is `net.head(net.body(x))`, as every built-in one is."""
        return {"body", "head"} <= {name for name, _ in self.net.named_children()}

    @property
    def num_parameters(self) -> int:
        """Numbers in all trainable leaves; buffers don't count."""
        return sum(leaf.numel() for leaf in self.net.parameters())

    @property
    def num_buffer_elements(self) -> int:
        """Numbers in all buffers (running statistics and their counters)."""
        return sum(leaf.numel() for leaf in self.net.buffers())
