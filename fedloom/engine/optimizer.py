"""Optimizers as pure functions of (parameters, gradients, memory)."""

import math
from dataclasses import dataclass

from torch import Tensor

from fedloom import tree
from fedloom.types import Params


@dataclass(frozen=True)
class Sgd:
    """SGD with momentum and L2 decay, PyTorch's order: no dampening, no Nesterov.

    g <- g + weight_decay w,    u <- momentum u + g,    w <- w - lr u
    """

    momentum: float = 0.9
    weight_decay: float = 1e-5

    def init(self, params: Params) -> Params:
        """A fresh memory: every client starts each round with an empty one."""
        return tree.zeros_like(params) if self.momentum else {}

    def step(
        self, params: Params, grads: Params, memory: Params, lr: Tensor
    ) -> tuple[Params, Params]:
        """(parameters, memory) after one step over the leaves of `grads`."""
        if self.weight_decay:
            grads = tree.add(grads, tree.pick(params, grads), self.weight_decay)
        if self.momentum:
            grads = tree.add(grads, tree.pick(memory, grads), self.momentum)
            memory = {**memory, **grads}
        return tree.add(params, grads, -lr), memory

    def travel(self, num_steps: int, lr: float, pull: float = 0.0) -> float:
        """How far `num_steps` steps carry a leaf whose loss gradient is constantly one.

        With v_t = (1 - rho^t) / (1 - rho) and kappa = 1 - lr pull it is lr sum_t kappa^(K-t) v_t,
        the recursion v <- rho v + 1, a <- kappa a + v in closed form. Weight decay is left out.

        >>> round(Sgd(momentum=0.9).travel(10, lr=1.0), 2)
        41.38
        >>> Sgd(momentum=0.0).travel(7, lr=0.5)
        3.5
        """
        rho, kappa = self.momentum, 1.0 - lr * pull
        if abs(kappa) > 1.0 and num_steps * math.log(abs(kappa)) > 700.0:
            return math.inf
        plain = num_steps if pull == 0 else _power_gap(kappa, num_steps) / (1.0 - kappa)
        if rho == 0:
            return lr * plain
        if math.isclose(rho, kappa):
            echo = num_steps * kappa**num_steps
        else:
            echo = rho * (kappa**num_steps - rho**num_steps) / (kappa - rho)
        return lr * (plain - echo) / (1.0 - rho)


def _power_gap(base: float, exponent: int) -> float:
    """1 - base**exponent without cancellation for a base near one."""
    return -math.expm1(exponent * math.log(base)) if base > 0 else 1.0 - base**exponent
