"""Sums that no order, executor or number of workers can change."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedloom import tree
from fedloom.engine.local import Outcome
from fedloom.engine.orders import Common, Order
from fedloom.engine.reduce import SHARDS, Shard, divide, in_order, plus, total
from fedloom.method import Method
from fedloom.methods import make
from tests.problems import federation, gap, same_bits

STEPS = st.lists(st.integers(1, 1000), min_size=1, max_size=120)


class Median(Method):
    """The coordinate-wise median of the clients' models."""

    @property
    def needs_each(self):
        return True

    def collect(self, report, num_examples):
        return {"delta": report["delta"]}

    def aggregate(self, server, sums, cohort):
        middle = {name: leaf.median(0).values for name, leaf in sums["delta"].items()}
        return {"params": tree.add(server["params"], middle)}


@given(STEPS, st.integers(1, 40))
def test_every_place_is_in_one_group_and_no_group_is_overfull(steps, count):
    groups = divide(steps, count)
    assert sorted(place for group in groups for place in group) == list(range(len(steps)))
    loads = [sum(steps[place] for place in group) for group in groups]
    assert all(groups)
    assert max(loads) <= sum(steps) / len(groups) + max(steps)  # list scheduling


def outcome(value: float) -> Outcome:
    leaf = torch.tensor([value])
    return Outcome({"delta": {"w": leaf}}, {}, {}, torch.tensor(0.0))


@settings(deadline=None)
@given(st.permutations(range(6)), st.lists(st.floats(-1e6, 1e6, width=32), min_size=6, max_size=6))
def test_the_order_in_which_clients_finish_changes_no_bit(order, values):
    common = Common(make("fedavg"), {}, 1, 0.1, "average", False, False)
    orders = [Order(c, torch.zeros(c + 1).numpy(), {}, {}) for c in range(6)]
    found = []
    for sequence in (range(6), order):
        shard, parts = Shard(0, common, orders), []
        for place in sequence:
            parts.append(shard.add(place, outcome(values[place]), 1, 0))
        assert [part is not None for part in parts] == [False] * 5 + [True]
        found.append(parts[-1])
    assert same_bits(found[0].sums, found[1].sums)
    assert [done.client for done in found[1].done] == list(range(6))
    exact = sum((c + 1) * float(values[c]) for c in range(6))
    assert abs(float(found[0].sums["delta"]["w"]) - exact) <= 1e-9 * (1 + abs(exact))


def test_float64_sums_keep_what_float32_would_lose():
    """2^24 + 1 ones: float32 stops counting at 2^24."""
    terms = tree.weigh({"w": torch.tensor([2.0**24])}, 1.0), tree.weigh({"w": torch.ones(1)}, 1.0)
    assert float(plus(plus(None, terms[0]), terms[1])["w"]) == 2**24 + 1
    assert float(torch.tensor(2.0**24) + 1) == 2**24


def test_adding_leaves_the_first_terms_as_they_were():
    first = {"a": torch.ones(2), "deep": {"b": torch.ones(1, dtype=torch.float64)}}
    sums = plus(plus(None, first), first)
    assert float(sums["deep"]["b"]) == 2.0
    assert float(first["deep"]["b"]) == 1.0


def test_parts_are_handed_on_in_the_order_of_shards():
    common = Common(make("fedavg"), {}, 1, 0.1, "average", False, False)
    parts = []
    for number in (2, 0, 1):
        shard = Shard(number, common, [Order(number, torch.zeros(1).numpy(), {}, {})])
        parts.append(shard.add(0, outcome(float(number)), 1, 0))
    assert [part.shard for part in in_order(iter(parts))] == [0, 1, 2]
    assert float(total(in_order(iter(parts)))[0]["delta"]["w"]) == 3.0


def test_a_cohort_larger_than_the_shards_is_summed_as_a_small_one():
    sizes = tuple(3 + i % 5 for i in range(SHARDS + 9))
    here = federation(sizes)
    clients = list(range(len(sizes)))
    every: dict[int, dict] = {client: {} for client in clients}
    sent = {"params": here.params}
    whole = here.engine.train(make("fedavg"), sent, clients, every, every, round=1, lr=0.1).sums
    single = None
    for client in clients:
        one = here.engine.train(make("fedavg"), sent, [client], every, every, round=1, lr=0.1).sums
        single = plus(single, one)
    assert gap(whole, single) < 1e-12


def test_a_method_that_needs_each_report_gets_them_side_by_side():
    for workers, executor in ((1, "loop"), (1, "mapped")):
        here = federation(executor=executor, workers=workers)
        after, _ = here.play(Median(), rounds=1)
        deltas = []
        for client in range(5):
            alone, _ = here.play(make("fedavg"), rounds=1, cohorts=[[client]])
            deltas.append(tree.sub(alone["params"], here.params))
        middle = {n: leaf.median(0).values for n, leaf in tree.stack(deltas).items()}
        assert gap(after["params"], tree.add(here.params, middle)) < 1e-12
