"""Record a pure function's tensor operations once, then replay them without the Python above them.

Mapping over lanes costs several layers of dispatch for every operation; a replay calls the same
operations with the same arguments, so its results are the same bits.
"""

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

WARM_CALLS = 20  # a layout seen less often isn't worth half a second of recording


class Replay:
    """Calls functions of nested tensors; a layout called often is recorded and replayed.

    A function must depend on its arguments alone; `key` names everything else that it closes over.
    Functions that can't be recorded keep being called as they are, and `refused` says why.
    """

    def __init__(self) -> None:
        self._calls: dict[Hashable, int] = {}
        self._recorded: dict[Hashable, tuple[Callable[..., Any], Any]] = {}
        self.refused: str | None = None

    def __call__(self, key: Hashable, function: Callable[..., Any], *args: Any) -> Any:
        """function(*args)."""
        flat, spec = pytree.tree_flatten(args)
        layout = (key, spec, tuple(_layout(leaf) for leaf in flat))
        if layout in self._recorded:
            replay, out_spec = self._recorded[layout]
            return pytree.tree_unflatten(replay(*flat), out_spec)
        calls = self._calls[layout] = self._calls.get(layout, 0) + 1
        if calls > WARM_CALLS and self.refused is None:
            try:
                self._recorded[layout] = _record(function, flat, spec)
            except Exception as error:  # whatever a model or method does that can't be recorded
                self.refused = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return function(*args)


def _layout(leaf: Tensor) -> tuple[Any, ...]:
    return leaf.shape, leaf.stride(), leaf.dtype


def _record(
    function: Callable[..., Any], flat: list[Tensor], spec: Any
) -> tuple[Callable[..., Any], Any]:
    out_spec: list[Any] = []

    def flattened(*leaves: Tensor) -> list[Tensor]:
        values, found = pytree.tree_flatten(function(*pytree.tree_unflatten(list(leaves), spec)))
        out_spec.append(found)
        return values

    # Stand-ins: arguments that happen to be one and the same tensor now won't be in other calls.
    alike = [torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype) for leaf in flat]
    with torch.no_grad():
        graph = make_fx(flattened, tracing_mode="fake")(*alike)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph.forward, out_spec[-1]
