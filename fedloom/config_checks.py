"""Settings that can't stand together, and the sentences that say so."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic.fields import FieldInfo

from fedloom.config_keys import SPECS, allowed

if TYPE_CHECKING:
    from fedloom.config import RunConfig

TEST_SHARE = 0.2
"""The share of rows kept for the test where neither it nor a test file is given."""


def one_of_two(values: Mapping[str, Any]) -> dict[str, Any]:
    """Asking for local steps alone switches the default epochs off."""
    if values.get("local_steps") is not None and "local_epochs" not in values:
        return {**values, "local_epochs": None}
    return dict(values)


def problem(name: str, value: Any, message: str, field: FieldInfo) -> str:
    """One sentence about a value that a setting can't take."""
    detail = message.removeprefix("Value error, ") if name in SPECS else ""
    tail = f" ({detail})" if detail else ""
    return f"{name} = {value!r}: expected {allowed(name, field)}{tail}"


def contradictions(config: "RunConfig") -> list[tuple[tuple[str, ...], str]]:
    """Settings that can't stand together: the names concerned, and a sentence."""
    found: list[tuple[tuple[str, ...], str]] = []
    pair = ("local_epochs", "local_steps")
    epochs, steps = config.local_epochs, config.local_steps
    if epochs is not None and steps is not None:
        found.append((pair, f"local_epochs = {epochs} and local_steps = {steps}: give one of them"))
    if epochs is None and steps is None:
        found.append((pair, "local_epochs and local_steps are both none: give one of them"))
    cohort, share, clients = config.cohort, config.participation, config.num_clients
    if cohort is not None and share != 1.0:
        text = f"participation = {share} and cohort = {cohort}: give one of them"
        found.append((("participation", "cohort"), text))
    if cohort is not None and clients is not None and cohort > clients:
        text = f"cohort = {cohort}: expected at most the {clients} clients there are"
        found.append((("cohort", "clients", "data", "partition"), text))
    if config.test is not None and config.test_share != TEST_SHARE:
        text = f"test = {config.test!r} and test_share = {config.test_share}: give one of them"
        found.append((("test", "test_share"), text))
    return found
