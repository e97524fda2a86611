"""Each method against FedAvg, closed forms and its own invariants."""

import itertools

import numpy as np
import pytest
import torch

from fedloom import tree
from fedloom.clients.batches import LocalWork
from fedloom.clients.examples import Examples
from fedloom.engine.cohort import Engine
from fedloom.engine.optimizer import Sgd
from fedloom.engine.trainer import Trainer
from fedloom.methods import make
from fedloom.testing import Quadratic, at, began
from fedloom.types import Cohort
from tests.problems import Federation, aggregated, federation, gap, same_bits


def quadratics(targets, *, steps=1, sizes=None, momentum=0.0, decay=0.0) -> Federation:
    """One client per target, whose loss is |w - target|^2 / 2; start at 0."""
    sizes = sizes or [1] * len(targets)
    x = np.repeat(np.asarray(targets, float), sizes)[:, None]
    bounds = np.cumsum([0, *sizes])
    rows = [np.arange(a, b) for a, b in itertools.pairwise(bounds)]
    trainer = Trainer(
        task=Quadratic(),
        examples=Examples(x, np.zeros(len(x), np.int64)),
        optimizer=Sgd(momentum, decay),
        work=LocalWork(None, steps, max(sizes)),
        seed=0,
    )
    return Federation(Engine(trainer, rows), {"w": torch.zeros(1, dtype=torch.float64)}, {})


def cohort(*counts, num_clients=None, total=None) -> Cohort:
    n = torch.tensor(counts, dtype=torch.float64)
    return Cohort(n, num_clients or len(counts), total or int(n.sum()))


def test_fedavg_weighs_by_examples_and_not_by_clients():
    server = {"params": at(0.0)}
    reports = {"delta": {"w": torch.tensor([0.0, 4.0])}}
    plain, uniform = make("fedavg"), make("fedavg", weighting="uniform")
    assert aggregated(plain, server, reports, cohort(1, 3))["params"]["w"] == 3.0
    assert aggregated(uniform, server, reports, cohort(1, 3))["params"]["w"] == 2.0


def test_every_client_starts_from_the_broadcast_weights():
    """Deltas +1, +3, -6 from 2.0: the mean is 4/3 only if no client sees another's steps."""
    server = {"params": at(2.0)}
    reports = {"delta": {"w": torch.tensor([1.0, 3.0, -6.0])}}
    after = aggregated(make("fedavg"), server, reports, cohort(1, 1, 1))
    assert after["params"]["w"] == pytest.approx(4 / 3)
    assert server["params"]["w"] == 2.0
    targets = [1.0, 3.0, -6.0]
    new, _ = quadratics(targets).play(make("fedavg"), rounds=1, lr=1.0)
    assert float(new["params"]["w"]) == pytest.approx(sum(targets) / 3)


@pytest.mark.parametrize("executor", ["loop", "mapped"])
@pytest.mark.parametrize("norm", [False, True])
def test_fedprox_without_a_pull_is_fedavg_to_the_bit(executor, norm):
    here = federation(executor=executor, norm=norm)
    prox, avg = here.play(make("fedprox", mu=0.0)), here.play(make("fedavg"))
    assert same_bits(prox[0], avg[0])


def test_the_proximal_term_by_hand():
    """Start 0, constant gradient 1, rate 0.1, mu 1: -0.1, then -0.1 - 0.1 (1 - 0.1) = -0.19."""
    prox, w = make("fedprox", mu=1.0), 0.0
    for _ in range(2):
        grads = prox.correct(at(1.0), at(w), began(0.0))
        w -= 0.1 * float(grads["w"])
    assert w == pytest.approx(-0.19)


def test_a_larger_mu_ends_nearer_to_the_start():
    here = federation()
    start = here.params
    far = [
        float(
            tree.sqnorm(tree.sub(here.play(make("fedprox", mu=mu), rounds=1)[0]["params"], start))
        )
        for mu in (0.0, 0.1, 1.0, 10.0)
    ]
    assert far == sorted(far, reverse=True)
    assert far[0] > far[-1] * 1.5


def test_the_pull_goes_through_momentum():
    """Two steps by hand on |w - 1|^2 / 2 with momentum 0.9, decay 0.1 and mu 0.5."""
    lr, rho, decay, mu, w, u = 0.1, 0.9, 0.1, 0.5, 0.0, 0.0
    for _ in range(2):
        u = rho * u + (w - 1.0) + mu * w + decay * w
        w -= lr * u
    here = quadratics([1.0], steps=2, momentum=rho, decay=decay)
    server, _ = here.play(make("fedprox", mu=mu), rounds=1, lr=lr)
    assert float(server["params"]["w"]) == pytest.approx(w, abs=1e-12)


SCAFFOLDS = ["scaffold", "scaffold(correction='gradient')"]


@pytest.mark.parametrize("spec", SCAFFOLDS)
def test_scaffold_with_one_client_is_fedavg(spec):
    here = federation((20,))
    ours, plain = here.play(make(spec), rounds=6), here.play(make("fedavg"), rounds=6)
    assert gap(ours[0]["params"], plain[0]["params"]) < 1e-12


@pytest.mark.parametrize("spec", SCAFFOLDS)
def test_the_first_round_of_scaffold_is_fedavg(spec):
    here = federation()
    ours, plain = here.play(make(spec), rounds=1), here.play(make("fedavg"), rounds=1)
    assert gap(ours[0]["params"], plain[0]["params"]) < 1e-12


@pytest.mark.parametrize(
    ("spec", "weighted"),
    [
        ("scaffold", True),
        ("scaffold(correction='gradient')", True),
        ("scaffold(c_weights='uniform')", False),
        ("scaffold(c_weights='uniform', weighting='uniform')", False),
        ("scaffold(weighting='uniform')", False),
    ],
)
def test_the_server_control_is_the_weighted_sum_of_all_clients_controls(spec, weighted):
    """Over 20 rounds of partial participation, clients that were never sampled counting with 0."""
    here, method = federation(), make(spec)
    draw = np.random.RandomState(0)
    server, memories = method.init_server(here.params), {}
    sizes = here.sizes()
    for round in range(1, 21):
        chosen = sorted(draw.permutation(4)[:2].tolist())  # client 4 is never sampled
        server, memories = here.round(method, server, memories, round, 0.05, chosen)
        share = [n / sum(sizes) if weighted else 1 / len(sizes) for n in sizes]
        expected = tree.zeros_like(here.params)
        for client, memory in memories.items():
            expected = tree.add(expected, memory["control"], share[client])
        assert gap(server["control"], expected) < 1e-11


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_under_a_linear_loss_a_control_in_the_gradient_is_the_clients_gradient(momentum):
    """However many steps: c_i+ = g_i exactly, and so c is the mean gradient."""

    class Linear(Quadratic):
        def loss(self, params, batch):
            return (params["w"] * batch["x"]).sum(-1).mean()

    here = quadratics([2.0, -3.0], steps=7, momentum=momentum).with_engine(task=Linear())
    server, memories = here.play(make("scaffold", correction="gradient"), rounds=3, lr=0.1)
    assert float(memories[0]["control"]["w"]) == pytest.approx(2.0, abs=1e-10)
    assert float(memories[1]["control"]["w"]) == pytest.approx(-3.0, abs=1e-10)
    assert float(server["control"]["w"]) == pytest.approx(-0.5, abs=1e-10)


def test_a_client_with_a_larger_gradient_is_pulled_back():
    ctx = began(0.0, sent={"control": at(1.0)}, client={"control": at(5.0)})
    inside = make("scaffold", correction="gradient").correct(at(5.0), at(0.0), ctx)
    assert inside["w"] == 1.0  # 5 - 5 + 1
    outside = make("scaffold").after_step(at(0.0), ctx)
    assert outside["w"] == 4.0  # 0 - lr (1 - 5), lr = 1


def test_scaffold_finds_the_joint_optimum_where_fedavg_stalls():
    """Two curvatures, many local steps: FedAvg's fixed point is off, SCAFFOLD's is the optimum."""

    class Curved(Quadratic):
        def loss(self, params, batch):
            curvature = torch.where(batch["x"] > 0, 4.0, 1.0)
            return (curvature * (params["w"] - batch["x"]).square()).sum(-1).mean() / 2

    here = quadratics([1.0, -1.0], steps=20).with_engine(task=Curved())
    best = (4.0 - 1.0) / 5.0
    found = {
        name: float(here.play(make(name), rounds=60, lr=0.1)[0]["params"]["w"])
        for name in ("fedavg", "scaffold")
    }
    assert abs(found["scaffold"] - best) < 1e-6
    assert abs(found["fedavg"] - best) > 0.1


def test_controls_of_clients_that_were_not_sampled_stay_untouched_and_unshared():
    here, method = federation(), make("scaffold")
    server, memories = here.play(method, rounds=2)
    kept = {name: leaf.clone() for name, leaf in memories[3]["control"].items()}
    server, memories = here.round(method, server, memories, 3, 0.05, [0, 1])
    assert same_bits(memories[3]["control"], kept)
    owners = [
        leaf.data_ptr() for memory in memories.values() for leaf in memory["control"].values()
    ]
    assert len(owners) == len(set(owners))


def test_local_training_of_a_client_is_fedavg_with_that_client_alone():
    here = federation()
    _, memories = here.play(make("local"), rounds=3)
    alone = federation().play(make("fedavg"), rounds=3, cohorts=[[2]] * 3)
    assert gap(memories[2]["own"], alone[0]["params"]) < 1e-12


def test_local_training_sends_nothing():
    method = make("local")
    assert method.broadcast({"params": at(0.0)}) == {}
