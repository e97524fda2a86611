"""Record a pure function's tensor operations once, then replay them without the Python above them.

Mapping over lanes costs several layers of dispatch for every operation; a replay calls the same
operations with the same arguments, so its results are the same bits. A recording can also be
compiled to machine code, which fuses operations and so differs in the last bits.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

WARM_CALLS = 20  # a layout seen less often isn't worth half a second of recording
WARM_LOOP = 200  # likewise for the steps of single clients, where a replay saves less

TOLERANCE, TINY = 1e-3, 1e-9  # by which machine code may differ from the recording, of the largest
DOUBTS = 3  # further recordings of code from outside

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
    Functions that can't be recorded keep being called as they are, and `refused` says why. With
    `compiled` every layout is recorded and compiled at once, however seldom it comes: bits must
    not depend on how long a process has been running. Unless `trusted`, functions are recorded
    several times, and refused if they don't do the same operations each time.
    """

    def __init__(
        self, compiled: bool = False, warm_calls: int = WARM_CALLS, *, trusted: bool = True
    ) -> None:
        self._tables: dict[Hashable, dict[Layout, _Seen]] = {}
        self.compiled, self.trusted = compiled, trusted
        self.warm_calls = 0 if compiled else warm_calls
        self.refused: str | None = None
        self.refused_compiling: str | None = None

    def __reduce__(self) -> Any:
        """Another process makes recordings of its own."""
        return partial(Replay, trusted=self.trusted), (self.compiled, self.warm_calls)

    def notes(self) -> tuple[str, ...]:
        """What could not be recorded or compiled, in sentences."""
        found = {"recorded": self.refused, "compiled": self.refused_compiling}
        return tuple(
            f"Training steps can't be {how} ({why}); they go on without."
            for how, why in found.items()
            if why
        )

    def fold(
        self,
        key: Hashable,
        function: Step,
        state: Any,
        blocks: Iterable[dict[str, Tensor]],
        constants: Any,
    ) -> Any:
        """The state after state = function(state, item, constants) for every item of the blocks.

        A block has the leaves of T items, stacked in front.
        """
        fixed, fixed_spec = pytree.tree_flatten(constants)
        flat, spec = pytree.tree_flatten(state)
        for block in blocks:
            where = (key, spec, fixed_spec, *block)
            columns = [leaf.unbind(0) for leaf in block.values()]
            items = _layout([leaf[0] for leaf in columns]), _layout(fixed)
            seen: _Seen | None = None
            for leaves in zip(*columns, strict=True):
                if seen is None:
                    table = self._tables.setdefault(where, {})
                    seen = table.setdefault((_layout(flat), *items), _Seen())
                if seen.graph is None:
                    item = dict(zip(block, leaves, strict=True))
                    flat = self._call(seen, function, flat, spec, item, fixed, fixed_spec)
                    seen = None
                    continue
                flat = seen.graph(*flat, *leaves, *fixed)
                seen = seen if seen.stable else None
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
        if self.refused is None and seen.calls >= self.warm_calls:
            try:
                graph = self._recorded(flattened, inputs)
                result = list(graph(*inputs))
                seen.graph, seen.stable = graph, _layout(result) == _layout(flat)
                return result
            except Exception as error:  # whatever a model or method does that can't be recorded
                self.refused = _line(error)
        seen.calls += 1
        return flattened(*inputs)

    def _recorded(self, function: Callable[..., Any], inputs: list[Tensor]) -> Callable[..., Any]:
        graph, _ = _record(function, inputs)
        if not self.trusted and any(
            _record(function, inputs)[0].code != graph.code for _ in range(DOUBTS)
        ):
            raise ValueError("it does other operations each time")
        if self.compiled:
            try:
                return _compile(function, inputs, graph)
            except Exception as error:  # the compiler's own failures are of any type
                self.compiled, self.refused_compiling = False, _line(error)
        return graph.forward


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _layout(leaves: Sequence[Tensor]) -> Layout:
    return tuple((leaf.shape, leaf.stride(), leaf.dtype) for leaf in leaves)


def _record(
    function: Callable[..., Any], inputs: list[Tensor], table: dict[Any, Any] | None = None
) -> tuple[torch.fx.GraphModule, list[Tensor]]:
    # Stand-ins: arguments that happen to be one and the same tensor now won't be in other calls.
    alike = [
        torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device)
        for leaf in inputs
    ]
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        graph = make_fx(function, tracing_mode="fake", decomposition_table=table)(*alike)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph, alike


def _compile(
    function: Callable[..., Any], inputs: list[Tensor], recording: torch.fx.GraphModule
) -> Callable[..., Any]:
    """The function as machine code, held against its recording once.

    Raises ValueError if the two disagree by more than rounding.
    """
    from torch import _inductor  # seconds to import, and only this needs it

    graph, alike = _record(function, inputs, _WITHOUT_ALPHA)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        on_cpu = all(leaf.device.type == "cpu" for leaf in inputs)
        options: dict[str, Any] = {"cpp_wrapper": True} if on_cpu else {}
        compiled = _inductor.compile(graph, [*alike], options=options)
        for name, one, other in zip(
            itertools.count(), recording.forward(*inputs), compiled(*inputs), strict=False
        ):
            gap, size = (one - other).abs().max(), one.abs().max()
            if one.is_floating_point() and one.numel() and not gap <= TOLERANCE * size + TINY:
                raise ValueError(
                    f"compiled result {name} is off by {float(gap):.1e} of {float(size):.1e}"
                )
    return compiled


def _plus(a: Tensor, b: Tensor | float, *, alpha: float = 1) -> Any:
    return NotImplemented if alpha == 1 else torch.add(a, b * alpha)


def _minus(a: Tensor, b: Tensor | float, *, alpha: float = 1) -> Any:
    return NotImplemented if alpha == 1 else torch.sub(a, b * alpha)


# The compiler fuses a product with a sum and drops the sum's alpha (torch 2.13).
_WITHOUT_ALPHA = {torch.ops.aten.add.Tensor: _plus, torch.ops.aten.sub.Tensor: _minus}
