"""FedNova against closed forms, and methods by name."""

import pytest
import torch

from fedloom import methods
from fedloom.engine.optimizer import Sgd
from fedloom.errors import ConfigError
from fedloom.methods import make
from fedloom.testing import at
from fedloom.types import Cohort
from tests.problems import aggregated, collected, federation, gap


def cohort(*counts: float) -> Cohort:
    n = torch.tensor(counts, dtype=torch.float64)
    return Cohort(n, len(counts), int(n.sum()))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_fednova_with_equal_steps_is_fedavg(momentum):
    here = federation((21, 20, 15, 16), momentum=momentum)  # three batches of 7 each
    nova, avg = here.play(make("fednova")), here.play(make("fedavg"))
    assert gap(nova[0], avg[0]) < 1e-12


def test_fednova_with_unequal_steps_by_hand():
    """A: 1 step of gradient 1; B: 10 steps of -1 each; rate 0.1. FedNova 0.0, FedAvg +0.45."""
    delta = torch.tensor([-0.1, 1.0])
    a = torch.tensor([1.0, 10.0])
    reports = {"direction": {"w": delta / a}, "a": a, "steps": a}
    nova = aggregated(make("fednova"), {"params": at(0.0)}, reports, cohort(1, 1))
    assert float(nova["params"]["w"]) == pytest.approx(0.0, abs=1e-7)
    deltas = {"delta": {"w": delta}}
    avg = aggregated(make("fedavg"), {"params": at(0.0)}, deltas, cohort(1, 1))
    assert float(avg["params"]["w"]) == pytest.approx(0.45)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(1, 1.0), (2, 2.9), (10, 41.38), (30, 213.8), (50, 410.5), (100, 910.0), (1000, 9910.0)],
)
def test_the_normaliser_of_momentum_has_the_published_values(steps, expected):
    assert Sgd(0.9).travel(steps, lr=1.0) == pytest.approx(expected, abs=0.06)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("pull", [0.0, 0.01, 1.0, 5.0, 10.0])
@pytest.mark.parametrize("steps", [1, 2, 17, 1000, 100_000])
def test_the_closed_form_of_travel_is_the_recursion(rho, pull, steps):
    lr, a, v = 0.1, 0.0, 0.0
    for _ in range(steps):
        v = rho * v + 1.0
        a = (1.0 - lr * pull) * a + v
    assert Sgd(rho).travel(steps, lr, pull) == pytest.approx(lr * a, rel=1e-9)


def test_the_overshoot_of_fednova_is_one_only_for_equal_steps():
    method = make("fednova")
    for a in ([5.0, 5.0, 5.0], [5.0, 5.0, 6.0], [1.0, 50.0, 400.0]):
        reports = {"a": torch.tensor(a), "steps": torch.tensor(a)}
        sums = collected(method, reports, cohort(3, 2, 9))
        overshoot = method.observe({}, sums, cohort(3, 2, 9))["W"]
        assert overshoot == pytest.approx(1.0) if len(set(a)) == 1 else overshoot > 1.0


def test_normalising_by_w_bounds_fednovas_step():
    """All clients moved by the same delta: the model moves by it too, not by W times it."""
    a, delta = torch.tensor([1.0, 100.0]), torch.tensor([1.0, 1.0])
    reports = {"direction": {"w": delta / a}, "a": a, "steps": a}
    moved = {
        normalise: float(
            aggregated(
                make("fednova", normalise_W=normalise), {"params": at(0.0)}, reports, cohort(1, 1)
            )["params"]["w"]
        )
        for normalise in (False, True)
    }
    assert moved[True] == pytest.approx(1.0)
    assert moved[False] == pytest.approx(50.5 * 0.505)


def test_fednova_by_batches_weighs_small_clients_up():
    a = torch.tensor([1.0, 1.0])
    reports = {"direction": {"w": torch.tensor([1.0, 0.0])}, "a": a, "steps": a}
    for weighting, expected in (("examples", 1 / 65), ("batches", 1 / 2)):
        method = make("fednova", weighting=weighting)
        after = aggregated(method, {"params": at(0.0)}, reports, cohort(1, 64))
        assert float(after["params"]["w"]) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["FedAvg", "FEDAVG", "fed_avg", "fed-avg"])
def test_names_are_matched_without_regard_to_case_and_separators(name):
    assert make(name) == make("fedavg")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("fedfomo", "unknown method 'fedfomo'"),
        ("", "method is empty"),
        ("fedprox(muu=1)", "did you mean 'mu'"),
        ("scaffold(correction='none')", "one of"),
        ("fedavg(weighting='rows')", "one of"),
        ("fedprox(mu=-0.1)", "between 0 and"),
        ("fedprox(mu=1e39)", "between 0 and"),
        ("fedavg(server_lr=-1)", "between 0 and"),
        ("fedprox(mu='1')", "type float"),
        ("fedprox(mu=True)", "type float"),
        ("fednova(normalise_W=1)", "type bool"),
        ("fedprox(0.1)", "name every option"),
        ("no.such.module:Thing", "can't import 'no.such.module'"),
    ],
)
def test_what_cannot_be_a_method_is_refused(spec, message):
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        make(spec)


def test_every_method_found_has_a_summary_and_a_source():
    for name, line in methods.names().items():
        assert line.endswith(".") or ":" in line
        assert "Source:" in (methods.find(name).__doc__ or "")
