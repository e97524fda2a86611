"""The result of a run, computed from its record alone: resumed and unbroken runs give the same."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fedloom.server.setup import Setup

Event = dict[str, Any]
BEST_NOTE = "best round on the test set: optimistic, never the result"
SCORES = ("round", "accuracy", "balanced_accuracy", "macro_f1", "loss")


def summarise(
    setup: Setup,
    events: Sequence[Event],
    *,
    status: str,
    label: str,
    role: str,
    reason: str | None = None,
) -> dict[str, Any]:
    """The fields of `result.json`; the reported figure is that of the final round.

    Clients that train alone have no global model, so all but `personal` is left empty for them.
    """
    rounds = [event for event in events if event["event"] == "round"]
    evals = [event for event in events if event["event"] == "eval"]
    reported = [event for event in evals if event["split"] == setup.reported_split]
    final = reported[-1] if reported else {}
    bad = next((event["round"] for event in reported if event["diverged"]), None)
    if status == "diverged" and bad is None:
        bad = (rounds[-1]["round"] if rounds else 0) + 1
    return {
        "status": status,
        "reason": reason,
        "label": label,
        "role": role,
        "method": setup.config.method,
        "data": setup.dataset.name,
        "data_digest": setup.dataset.digest,
        "partition": setup.config.partition,
        "partition_digest": setup.partition.digest,
        "clients": setup.partition.num_clients,
        "rounds": rounds[-1]["round"] if rounds else 0,
        "seed": setup.config.seed,
        "preset": setup.config.preset,
        "reported_split": setup.reported_split,
        "final": None if role == "local" else _final(final, status, setup.config.on_nonfinite),
        "best": None if role == "local" else _best(reported),
        "mean_last_5": _mean([e["accuracy"] for e in reported[-5:]]) if role != "local" else None,
        "validation": _last(evals, "validation"),
        "personal": _personal(events),
        "constant_baseline": _constant_baseline(setup),
        "diverged": bad is not None,
        "diverged_round": bad,
        "constant_prediction": None if role == "local" else final.get("constant_prediction"),
        **_totals(rounds, evals, setup),
        "num_parameters": sum(leaf.numel() for leaf in setup.params.values()),
        "test_noise": setup.config.test_noise if setup.noise_split else None,
        "effective": {
            "lr": setup.config.learning_rate,
            "model": setup.task.model.name,
            **setup.choice.as_record(),
            "augment": asdict(setup.engine.trainer.augment),
            "clients_a_round": setup.cohort_size,
        },
        "notes": list(setup.notes),
    }


def _final(event: Event, status: str, policy: str) -> dict[str, Any] | None:
    """The last scores; none for a run that diverged, unless those are to be scored as well."""
    if not event or status != "finished" or (event["diverged"] and policy != "ignore"):
        return None
    return {key: event[key] for key in SCORES}


def _best(events: Sequence[Event]) -> dict[str, Any] | None:
    scored = [e for e in events if e["accuracy"] is not None and not e["diverged"]]
    if not scored:
        return None
    top = max(scored, key=lambda event: event["accuracy"])
    return {"round": top["round"], "accuracy": top["accuracy"], "note": BEST_NOTE}


def _last(events: Sequence[Event], split: str) -> dict[str, Any] | None:
    found = [event for event in events if event["split"] == split]
    return {key: found[-1][key] for key in SCORES} if found else None


def _personal(events: Sequence[Event]) -> dict[str, Any] | None:
    found = [event for event in events if event["event"] == "personal"]
    keys = ("round", "accuracy_mean", "accuracy_weighted", "population_std", "num_clients")
    return {key: found[-1][key] for key in keys} if found else None


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if defined else None


def _constant_baseline(setup: Setup) -> float:
    """Accuracy of always giving the test set's most frequent class."""
    counts = np.bincount(setup.dataset.y_test, minlength=1)
    return float(counts.max() / max(1, counts.sum()))


def _totals(rounds: Sequence[Event], evals: Sequence[Event], setup: Setup) -> dict[str, Any]:
    keys = (
        "bytes_up",
        "bytes_down",
        "niid_equivalent_bytes",
        "flops",
        "steps",
        "examples",
        "skipped_examples",
        "seconds",
        "server_seconds",
    )
    totals: dict[str, Any] = {key: sum(event[key] for event in rounds) for key in keys}
    totals["evaluation_seconds"] = sum(event["seconds"] for event in evals)
    totals["refused_reports"] = sum(len(event["refused"]) for event in rounds)
    return totals
