"""From a strategy written as text to a finished partition."""

import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedloom.errors import PartitionError
from fedloom.partition import checks
from fedloom.partition.labels import encode, fingerprint
from fedloom.partition.partition import Partition
from fedloom.partition.problem import Draw, Problem
from fedloom.partition.registry import resolve
from fedloom.partition.strategy import Strategy
from fedloom.spec import Spec

RNGS = ("default", "niid_legacy")
MANY_TRIES = 10
log = logging.getLogger(__name__)


def make(
    spec: str | Spec,
    labels: Any,
    num_clients: int | None,
    *,
    seed: int,
    groups: Any = None,
    x: Any = None,
    rng: str = "default",
) -> Partition:
    """Divide the rows with these labels among clients.

    `labels` [n] may be integers, text or whole floats in any usual container. `num_clients` may be
    None where the spec names `clients`, and for `by_group`, which then makes a client of each
    group. `groups` [n] are group ids for `by_group`, `x` [n, 3] points for `fcube_octants`.
    `rng="niid_legacy"` makes the split that NIID-Bench's code makes from this seed. The same
    arguments give the same split anywhere; no global generator is read or moved.

    Raises PartitionError for a strategy, option or number of clients that can't be used, and for a
    split that can't be made.

    >>> make("iid", [0, 1, 0, 1, 0], 2, seed=0).sizes.tolist()
    [3, 2]
    """
    checks.choice("rng", rng, RNGS)
    name, strategy, problem = _pose(spec, labels, num_clients, seed, groups, x)
    if problem.num_clients > problem.num_rows and not strategy.allows_empty:
        raise PartitionError(
            f"{name}: {problem.num_clients} clients for {problem.num_rows} rows would leave "
            f"clients without a row; use at most {problem.num_rows} clients"
        )
    draw = strategy.split(problem) if rng == "default" else strategy.split_legacy(problem)
    return finish(strategy, problem, draw, rng)


def confirm(
    partition: Partition,
    spec: str | Spec,
    labels: Any,
    num_clients: int | None,
    *,
    seed: int,
    groups: Any = None,
    x: Any = None,
    rng: str = "default",
) -> None:
    """Raise PartitionError, naming each difference, unless `make` would give this partition."""
    name, strategy, problem = _pose(spec, labels, num_clients, seed, groups, x)
    asked = {
        "strategy": name,
        "params": strategy.params(),
        "num_clients": problem.num_clients,
        "seed": problem.seed,
        "rng": rng,
        "labels_sha256": fingerprint(problem.y),
        "inputs_sha256": _inputs_sha256(problem),
    }
    stored = partition.settings
    differ = [
        f"{key} is {stored[key]!r}, not {asked[key]!r}"
        for key in asked
        if stored[key] != asked[key]
    ]
    if differ:
        raise PartitionError(
            "the stored partition was made with other settings: " + "; ".join(differ) + "; make it "
            "again, or restore the settings"
        )


def finish(strategy: Strategy, problem: Problem, draw: Draw, rng: str) -> Partition:
    """Put a draw into a checked partition and collect what a reader should know."""
    partition = Partition(
        order=draw.order,
        offsets=draw.offsets,
        positions=problem.y,
        classes=problem.classes,
        strategy=problem.strategy,
        params=strategy.params(),
        seed=problem.seed,
        rng=rng,
        tries=draw.tries,
        dropped=draw.dropped,
        facts=draw.facts,
        inputs_sha256=_inputs_sha256(problem),
    )
    found = (
        *draw.warnings,
        *_remarks(partition),
        *strategy.remarks(problem, partition.count_matrix),
    )
    for warning in found:
        log.warning("%s: %s", problem.strategy, warning)
    object.__setattr__(partition, "warnings", found)
    return partition


def few(items: Sequence[object], limit: int = 10) -> str:
    """The first items as text, and how many more there are."""
    text = ", ".join(map(str, items[:limit]))
    return text + (f" and {len(items) - limit} more" if len(items) > limit else "")


def _pose(
    spec: str | Spec, labels: Any, num_clients: int | None, seed: int, groups: Any, x: Any
) -> tuple[str, Strategy, Problem]:
    """The strategy and the problem, with all arguments checked."""
    name, strategy, named = resolve(spec, has_groups=groups is not None, has_points=x is not None)
    y, classes = encode(labels)
    ids = names = points = None
    if name == "by_group" and groups is not None:
        ids, names = encode(groups, "groups")
        if len(ids) != len(y):
            raise PartitionError(f"groups have {len(ids)} entries for {len(y)} labels")
    if name == "fcube_octants" and x is not None:
        points = np.asarray(x, np.float64)
    clients = _clients(name, num_clients, named, names)
    whole_seed = checks.whole("seed", seed, 0)
    return (
        name,
        strategy,
        Problem(y, tuple(classes.tolist()), clients, whole_seed, name, ids, names, points),
    )


def _clients(name: str, given: object, named: object, group_names: np.ndarray | None) -> int:
    if named is not None and given is not None and named != given:
        raise PartitionError(
            f"{name}: the partition names {named!r} clients, the settings {given!r}; say it once"
        )
    asked = named if given is None else given
    if asked is None and group_names is not None:
        asked = len(group_names)
    if asked is None and name == "by_group":
        raise PartitionError("by_group needs a group id for every row; these data have none")
    return checks.whole("the number of clients", asked, 1)


def _inputs_sha256(problem: Problem) -> str:
    """Fingerprint of what a strategy reads beside the labels."""
    parts: list[bytes] = []
    if problem.groups is not None and problem.group_ids is not None:
        parts = [fingerprint(problem.groups).encode(), _bytes(problem.group_ids)]
    if problem.x is not None:
        parts = [np.ascontiguousarray(problem.x, "<f8").tobytes()]
    return hashlib.sha256(b"|".join(parts)).hexdigest() if parts else ""


def _bytes(ids: np.ndarray) -> bytes:
    """Integers or text as bytes that no platform changes."""
    if ids.dtype.kind == "U":
        return "\0".join(ids.tolist()).encode()
    return ids.astype("<i8").tobytes()


def _remarks(partition: Partition) -> tuple[str, ...]:
    found = []
    if partition.tries > MANY_TRIES:
        found.append(
            f"{partition.tries} draws were needed to reach the minimum size, so the accepted split "
            "is no longer a plain Dirichlet sample"
        )
    if len(partition.dropped):
        lost = np.bincount(partition.positions[partition.dropped], minlength=partition.num_classes)
        whole = int(((lost == partition.class_counts) & (lost > 0)).sum())
        names = [f"{partition.classes[c]}: {lost[c]}" for c in np.flatnonzero(lost)]
        found.append(
            f"{len(partition.dropped)} of {partition.num_rows} rows are held by nobody, {whole} "
            f"whole classes among them (rows by class: {few(names)})"
        )
    if len(empty := np.flatnonzero(partition.sizes == 0)):
        found.append(f"{len(empty)} clients hold no row: {few(empty.tolist())}")
    return tuple(found)
