"""The optimizer against PyTorch's, and what lanes may never do."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from fedloom import tree
from fedloom.clients.batches import LocalWork, num_steps, plan
from fedloom.clients.examples import Examples
from fedloom.clients.noise import Noise
from fedloom.engine.cohort import Engine
from fedloom.engine.optimizer import Sgd
from fedloom.engine.trace import WARM_CALLS, Replay
from fedloom.engine.trainer import Trainer
from fedloom.method import Method
from fedloom.methods import make
from tests.problems import CLASSES, FEATURES, Net, federation, gap, same_bits, task_of


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.9, 0.1)])
@pytest.mark.parametrize("executor", ["loop", "mapped"])
def test_one_client_trains_as_pytorchs_sgd_would(momentum, decay, executor):
    here = federation((23,), executor=executor)
    here = here.with_engine(optimizer=Sgd(momentum, decay))
    server, _ = here.play(make("fedavg"), rounds=1, lr=0.1)
    net = Net().double()
    net.load_state_dict(here.params)
    reference = torch.optim.SGD(net.parameters(), 0.1, momentum, weight_decay=decay)
    order = plan(23, here.engine.trainer.work, seed=0, round=1, client=0)
    for index, count in zip(order.index, order.count, strict=True):
        rows = torch.from_numpy(index[:count])
        loss = nn.functional.cross_entropy(
            net(here.engine.trainer.examples.x[rows]), here.engine.trainer.examples.y[rows]
        )
        reference.zero_grad()
        loss.backward()
        reference.step()
    assert gap(server["params"], dict(net.named_parameters())) < 1e-12


def test_a_full_batch_step_of_fedavg_is_gradient_descent_on_the_pooled_data():
    sizes = (12, 5, 9)
    work = LocalWork(1, None, 64)
    apart = federation(sizes, work=work, momentum=0.0)
    pooled = apart.with_engine(rows=[np.arange(sum(sizes))])
    assert gap(apart.play(make("fedavg"))[0], pooled.play(make("fedavg"))[0]) < 1e-12


def test_training_looks_at_every_example_once_an_epoch():
    order = plan(33, LocalWork(3, None, 8), seed=1, round=2, client=5)
    assert order.count.tolist() == [8, 8, 8, 8, 1] * 3
    for epoch in range(3):
        mine = [order.index[t][: order.count[t]] for t in range(15) if order.epoch[t] == epoch]
        assert sorted(np.concatenate(mine)) == list(range(33))


def test_a_last_batch_of_one_is_left_out_and_counted_only_where_it_cannot_be_normalised():
    work = LocalWork(3, None, 32)
    kept, left = (plan(33, work, seed=0, round=1, client=0, min_batch=m) for m in (1, 2))
    assert (len(kept.count), kept.skipped) == (6, 0)
    assert (len(left.count), left.skipped) == (3, 3)
    assert left.count.tolist() == [32] * 3
    only = plan(1, work, seed=0, round=1, client=0, min_batch=2)
    assert only.count.tolist() == [1, 1, 1]


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 64])
@pytest.mark.parametrize("work", [LocalWork(2, None, 8), LocalWork(None, 5, 8)])
@pytest.mark.parametrize("least", [1, 2])
def test_the_steps_foretold_are_the_steps_planned(size, work, least):
    made = plan(size, work, seed=0, round=1, client=0, min_batch=least)
    assert num_steps(size, work, least) == len(made.count)


def test_fixed_steps_draw_without_replacement_and_never_more_than_the_client_has():
    made = plan(5, LocalWork(None, 4, 8), seed=0, round=1, client=0)
    assert made.count.tolist() == [5] * 4
    assert all(sorted(row[:5]) == list(range(5)) for row in made.index)


def test_batch_orders_differ_between_rounds_and_clients_and_repeat_for_the_same():
    work = LocalWork(1, None, 8)
    orders = {
        (round, client): plan(40, work, seed=0, round=round, client=client).index.tobytes()
        for round in (1, 2)
        for client in (0, 1)
    }
    assert len(set(orders.values())) == 4
    assert plan(40, work, seed=0, round=1, client=0).index.tobytes() == orders[1, 0]


@pytest.mark.parametrize("executor", ["loop", "mapped"])
def test_a_batch_larger_than_the_client_trains_on_what_there_is(executor):
    here = federation((10, 3), work=LocalWork(2, None, 64), executor=executor)
    trained = here.engine.train(
        make("fedavg"),
        {"params": here.params},
        [0, 1],
        {0: {}, 1: {}},
        {0: {}, 1: {}},
        round=1,
        lr=0.1,
    )
    assert [done.num_steps for done in trained.done] == [2, 2]
    assert trained.sums["weight"] == 13


class Alternating(Method):
    """Head in even epochs, body in odd ones."""

    def trainable(self, names, epoch):
        return tuple(n for n in names if n.startswith("head.") == (epoch % 2 == 0))


class FrozenHead(Method):
    """The body alone."""

    def trainable(self, names, epoch):
        return tuple(n for n in names if not n.startswith("head."))


@pytest.mark.parametrize("executor", ["loop", "mapped"])
def test_a_frozen_leaf_keeps_its_bits_through_weight_decay(executor):
    here = federation(executor=executor).with_engine(optimizer=Sgd(0.9, 0.5))
    server, _ = here.play(FrozenHead())
    assert torch.equal(server["params"]["head.weight"], here.params["head.weight"])
    assert not torch.equal(server["params"]["body.0.weight"], here.params["body.0.weight"])


def test_parts_that_take_turns_train_alike_in_loop_and_lanes():
    """Lanes at different epochs train different leaves in the same step."""
    work = LocalWork(4, None, 4)
    sizes = (30, 9, 17, 4, 22)
    looped = federation(sizes, work=work).play(Alternating())
    for lanes in (2, 3, 5):
        mapped = federation(sizes, work=work, executor="mapped", lanes=lanes).play(Alternating())
        assert gap(looped, mapped) < 1e-12


def test_a_replay_is_the_same_bits_as_the_calls_it_replaces():
    replay, calls = Replay(), []

    def function(state, item, constants):
        calls.append(1)
        return {"w": (state["w"] @ item["x"]).tanh() + constants["c"], "sum": state["w"].sum()}

    for width in (4, 2):
        state = {"w": torch.randn(width, width), "sum": torch.zeros(())}
        items = [{"x": torch.randn(width, width)} for _ in range(WARM_CALLS + 10)]
        constants = {"c": torch.randn(width)}
        expected = state
        for item in items:
            expected = function(expected, item, constants)
        before, block = len(calls), tree.stack(items)
        assert same_bits(replay.fold("key", function, state, [block], constants), expected)
        assert len(calls) - before < len(items)
    assert replay.refused is None


def test_arguments_that_were_one_tensor_when_recorded_may_differ_later():
    replay, same = Replay(), torch.randn(3)

    def function(state, item, constants):
        return state - 2 * constants

    for _ in range(WARM_CALLS + 3):
        replay.fold("key", function, same, [{"x": same[None]}], same)
    x, y = torch.randn(3), torch.randn(3)
    assert torch.equal(replay.fold("key", function, x, [{"x": y[None]}], y), x - 2 * y)


def test_what_cannot_be_recorded_goes_on_unrecorded_and_says_why():
    replay = Replay()

    def function(state, item, constants):
        return item["x"] * 2 if float(item["x"].sum()) > 0 else item["x"]

    up, down = torch.ones(2), -torch.ones(2)
    for _ in range(WARM_CALLS + 3):
        assert torch.equal(replay.fold("key", function, up, [{"x": up[None]}], {}), 2 * up)
    assert torch.equal(replay.fold("key", function, up, [{"x": down[None]}], {}), down)
    assert replay.refused


def test_dropout_repeats_with_the_seed_and_leaves_the_global_stream_alone():
    class Dropping(Net):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(self.body, nn.Dropout(0.5))

    def outcome(seed):
        here = federation()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            task = task_of(Dropping().double())
        trainer = Trainer(
            task=task,
            examples=here.engine.trainer.examples,
            optimizer=Sgd(),
            work=here.engine.trainer.work,
            seed=seed,
        )
        params, _ = task.initial()
        engine = Engine(trainer, here.engine.rows)
        return type(here)(engine, params, {}).play(make("fedavg"), rounds=1)[0]

    state = torch.random.get_rng_state()
    assert same_bits(outcome(0), outcome(0))
    assert not same_bits(outcome(0), outcome(1))
    assert torch.equal(state, torch.random.get_rng_state())


def test_sparse_rows_become_dense_only_in_a_batch():
    from scipy.sparse import csr_matrix

    here = federation()
    examples = here.engine.trainer.examples
    dense = examples.x.float().numpy() * (examples.x.numpy() > 0.5)
    y = examples.y.numpy()
    net = Net()
    task = task_of(net)
    params, _ = task.initial()
    both = []
    for x in (dense, csr_matrix(dense)):
        engine = here.with_engine(task=task, examples=Examples(x, y))
        engine.params = params
        both.append(engine.play(make("fedavg"), rounds=1)[0])
    assert same_bits(*both)
    assert dense.shape[1] == FEATURES
    assert task.num_classes == CLASSES


@dataclass(frozen=True)
class Distilled(Method):
    """Cross-entropy and the distance to the features of the start; teachers asked as said."""

    beforehand: bool = True

    def teach(self, task, batch, ctx):
        return {"z": task.features(ctx.start, batch)} if self.beforehand else {}

    def loss(self, task, params, batch, ctx):
        z, logits = task.outputs(params, batch)
        theirs = batch["z"] if self.beforehand else task.teacher().features(ctx.start, batch)
        log_p = logits.log_softmax(-1).gather(-1, batch["y"][:, None])[:, 0]
        return task.mean((z - theirs.detach()).square().mean(-1) - log_p, batch)


@pytest.mark.parametrize("executor", ["loop", "mapped"])
def test_teachers_asked_once_a_round_say_what_they_say_in_each_step(executor):
    here = federation((60, 41, 12, 3), executor=executor, work=LocalWork(4, None, 7))
    once, each = (here.play(Distilled(beforehand=way)) for way in (True, False))
    assert gap(once, each) < 1e-12
    noisy = Noise([0.1] * 4, [60, 41, 12, 3], 0, "each_access")
    anew = here.with_engine(noise=noisy)
    once, each = (anew.play(Distilled(beforehand=way)) for way in (True, False))
    assert gap(once, each) < 1e-12


def test_teachers_are_asked_for_each_example_once_a_round_unless_inputs_change(monkeypatch):
    seen = []
    monkeypatch.setattr(
        Distilled,
        "teach",
        lambda self, task, batch, ctx: (
            seen.append(int(batch["mask"].sum())) or {"z": task.features(ctx.start, batch)}
        ),
    )
    here = federation((20, 9), work=LocalWork(5, None, 7))
    here.play(Distilled(), rounds=2)
    assert sum(seen) == 2 * (20 + 9)
    seen.clear()
    noisy = Noise([0.1] * 2, [20, 9], 0, "each_access")
    here.with_engine(noise=noisy).play(Distilled(), rounds=2)
    assert sum(seen) == 2 * 5 * (20 + 9)
