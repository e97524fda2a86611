"""Record a pure function's tensor operations once, then replay them without the Python above them.

Mapping over lanes costs several layers of dispatch for every operation; a replay calls the same
operations with the same arguments, so its results are the same bits.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

WARM_CALLS = 20  # a layout seen less often isn't worth half a second of recording

Step = Callable[[Any, dict[str, Tensor], Any], Any]
"""(state, item, constants) -> state of the same structure; nested tensors all of them."""

Layout = tuple[Any, ...]


@dataclass
class _Seen:
    """One layout of arguments: how often it came, and its recording once there is one."""

    calls: int = 0
    graph: Callable[..., Any] | None = None
    stable: bool = False
    """Whether the recording gives states laid out like the one it takes."""


class Replay:
    """Folds functions over items; a layout of arguments that comes often is recorded.

    A function must depend on its arguments alone; `key` names everything else that it closes over.
    Functions that can't be recorded keep being called as they are, and `refused` says why.
    """

    def __init__(self) -> None:
        self._tables: dict[Hashable, dict[Layout, _Seen]] = {}
        self.refused: str | None = None

    def fold(
        self,
        key: Hashable,
        function: Step,
        state: Any,
        items: Iterable[dict[str, Tensor]],
        constants: Any,
    ) -> Any:
        """The state after state = function(state, item, constants) for every item."""
        fixed, fixed_spec = pytree.tree_flatten(constants)
        flat, spec = pytree.tree_flatten(state)
        table: dict[Layout, _Seen] | None = None
        for item in items:
            if table is None:
                where = (key, spec, fixed_spec, _layout(flat), _layout(fixed))
                table = self._tables.setdefault(where, {})
            leaves = list(item.values())
            seen = table.setdefault((*item, *_layout(leaves)), _Seen())
            if seen.graph is None:
                inputs = (flat, spec, item, fixed, fixed_spec)
                flat, table = self._call(seen, function, *inputs), None
                continue
            flat = seen.graph(*flat, *leaves, *fixed)
            table = table if seen.stable else None
        return pytree.tree_unflatten(flat, spec)

    def _call(
        self,
        seen: _Seen,
        function: Step,
        flat: list[Tensor],
        spec: Any,
        item: dict[str, Tensor],
        fixed: list[Tensor],
        fixed_spec: Any,
    ) -> list[Tensor]:
        """One call without a recording, of which one is made when it pays."""

        def flattened(*leaves: Tensor) -> list[Tensor]:
            first, last = len(flat), len(leaves) - len(fixed)
            state = pytree.tree_unflatten(list(leaves[:first]), spec)
            now = dict(zip(item, leaves[first:last], strict=True))
            constants = pytree.tree_unflatten(list(leaves[last:]), fixed_spec)
            return pytree.tree_leaves(function(state, now, constants))

        inputs = [*flat, *item.values(), *fixed]
        result = flattened(*inputs)
        seen.calls += 1
        if seen.calls > WARM_CALLS and self.refused is None:
            try:
                seen.graph = _record(flattened, inputs)
                seen.stable = _layout(result) == _layout(flat)
            except Exception as error:  # whatever a model or method does that can't be recorded
                self.refused = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        return result


def _layout(leaves: Sequence[Tensor]) -> Layout:
    return tuple((leaf.shape, leaf.stride(), leaf.dtype) for leaf in leaves)


def _record(function: Callable[..., Any], inputs: list[Tensor]) -> Callable[..., Any]:
    # Stand-ins: arguments that happen to be one and the same tensor now won't be in other calls.
    alike = [torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype) for leaf in inputs]
    with torch.no_grad():
        graph = make_fx(function, tracing_mode="fake")(*alike)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph.forward
