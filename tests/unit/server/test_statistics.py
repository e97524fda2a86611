"""What becomes of running statistics: one declared rule at a time."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedloom.clients.examples import Examples
from fedloom.engine.statistics import combine, recalibrate
from fedloom.server.round import begin, run_round
from fedloom.server.run import run
from fedloom.server.setup import prepare
from tests.problems import FEATURES, Net, gap, same_bits, task_of
from tests.unit.server.small import NORMED, events

MEAN, VAR, SEEN = (f"norm.{n}" for n in ("running_mean", "running_var", "num_batches_tracked"))


def report(mean, var, seen=1):
    mean, var = (torch.as_tensor(value, dtype=torch.float32) for value in (mean, var))
    return {MEAN: mean, VAR: var, SEEN: torch.tensor(seen)}


def moments(values, seen=1):
    return report(values.mean(0), values.var(0, unbiased=False), seen)


@pytest.mark.parametrize("rule", ["average", "pooled", "local"])
def test_means_count_by_examples_in_any_order(rule):
    """Client A (1 sample, mean 0) and client B (3 samples, mean 4): 3.0 in both orders."""
    a, b = report([0.0], [1.0]), report([4.0], [2.0])
    there, back = combine(rule, [a, b], [1, 3]), combine(rule, [b, a], [3, 1])
    assert there[MEAN].tolist() == [3.0]
    assert same_bits(there, back)


def test_averaged_variances_count_by_examples_and_pooled_ones_add_the_spread_of_means():
    """Average: (1 + 3 * 2) / 4; pooled: 1/4 (1 + 9) + 3/4 (2 + 1) = 4.75."""
    reports = [report([0.0], [1.0]), report([4.0], [2.0])]
    assert combine("average", reports, [1, 3])[VAR].tolist() == [1.75]
    assert combine("pooled", reports, [1, 3])[VAR].tolist() == [4.75]


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 5), st.integers(2, 9), st.integers(0, 99))
def test_pooled_statistics_are_the_moments_of_all_values_together(clients, rows, seed):
    draw = torch.Generator().manual_seed(seed)
    parts = [
        torch.randn(rows + i, 3, generator=draw) * (1 + i) + 10 * i - 20 for i in range(clients)
    ]
    found = combine("pooled", [moments(part) for part in parts], [len(part) for part in parts])
    together = torch.cat(parts)
    assert torch.allclose(found[MEAN], together.mean(0), rtol=1e-5, atol=1e-5)
    assert torch.allclose(found[VAR], together.var(0, unbiased=False), rtol=1e-4, atol=1e-5)


def test_the_order_of_three_clients_moves_at_most_the_last_bit():
    reports = [report([v], [v + 1.0]) for v in (0.1, -7.3, 1e4)]
    for rule in ("average", "pooled"):
        found = [
            combine(rule, [reports[i] for i in order], [(5, 3, 11)[i] for i in order])
            for order in itertools.permutations(range(3))
        ]
        for name in (MEAN, VAR):
            values = torch.stack([each[name] for each in found])
            assert torch.allclose(values, values[:1].expand_as(values), rtol=1e-6)


@pytest.mark.parametrize("rule", ["average", "pooled"])
@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=6), st.integers(0, 9))
def test_no_rule_gives_a_negative_variance(rule, means, seed):
    draw = np.random.RandomState(seed)
    reports = [report([mean], [draw.rand() * draw.randint(2)]) for mean in means]
    found = combine(rule, reports, draw.randint(1, 100, len(means)).tolist())
    assert float(found[VAR]) >= 0


@pytest.mark.parametrize("rule", ["average", "pooled", "local", "server_recalibrate"])
def test_the_counter_is_the_largest_and_stays_a_whole_number_without_axes(rule):
    found = combine(rule, [report([0.0], [1.0], 3), report([0.0], [1.0], 6)], [1, 9])
    assert (found[SEEN].dtype, found[SEEN].shape, int(found[SEEN])) == (torch.int64, (), 6)
    assert list(found) == [MEAN, VAR, SEEN]


def normed_task():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return task_of(Net(norm=True).double())


def entering(task, params, x):
    """What enters the batch normalisation."""
    return x @ params["body.0.weight"].T + params["body.0.bias"]


def test_recalibration_gives_the_moments_of_the_data():
    task = normed_task()
    params, buffers = task.initial()
    x = torch.randn(40, FEATURES, generator=torch.Generator().manual_seed(1)).double()
    examples = Examples(x.numpy(), np.zeros(40, np.int64))
    at_once = recalibrate(task, params, buffers, examples, torch.arange(40), 64)
    values = entering(task, params, x)
    assert gap(at_once["body.1.running_mean"], values.mean(0)) < 1e-12
    assert gap(at_once["body.1.running_var"], values.var(0)) < 1e-12
    in_batches = recalibrate(task, params, buffers, examples, torch.arange(40), 10)
    assert gap(in_batches["body.1.running_mean"], values.mean(0)) < 1e-12
    within = torch.stack([part.var(0) for part in values.split(10)]).mean(0)
    assert gap(in_batches["body.1.running_var"], within) < 1e-12
    assert gap(task.initial(), (params, buffers)) == 0


def test_recalibration_forgets_what_was_there_before():
    task = normed_task()
    params, buffers = task.initial()
    examples = Examples(np.random.RandomState(0).randn(20, FEATURES), np.zeros(20, np.int64))
    spoilt = {name: leaf + 5 for name, leaf in buffers.items()}
    rows = torch.arange(20)
    fresh, again = (recalibrate(task, params, b, examples, rows, 8) for b in (buffers, spoilt))
    for name in ("body.1.running_mean", "body.1.running_var"):
        assert gap(fresh[name], again[name]) == 0


def played(asked, rounds=2):
    setup = prepare(asked)
    state = begin(setup)
    for round in range(1, rounds + 1):
        state, fields = run_round(setup, state, round)
    return setup, state, fields


def test_the_statistics_of_a_model_without_normalisation_are_nothing_to_combine(make):
    _, state, _ = played(make(bn="pooled"))
    assert state.buffers == {}
    assert state.own_buffers == {}
    notes = prepare(make(bn="pooled")).notes
    assert any("nothing to do" in note for note in notes)


@pytest.mark.parametrize("executor", ["loop", "mapped"])
def test_fednova_extrapolates_parameters_and_never_variances(data, make, executor):
    """Sizes like 100 to 10: W is large, and the variance is the mean of the clients' own."""
    counts = [[100] * 3, *[[10] * 3] * 5]
    asked = make(
        partition=f"from_histograms(counts={counts}, min_size=2)",
        model=NORMED,
        method="fednova",
        executor=executor,
        lr=0.01,
    )
    _, state, fields = played(asked)
    assert fields["W"] > 2
    assert float(state.buffers["body.1.running_var"].min()) > 0
    _, averaged, _ = played(asked.replace(method="fedavg"), rounds=1)
    _, nova, _ = played(asked, rounds=1)
    assert gap(averaged.buffers, nova.buffers) < 1e-6
    assert gap(averaged.server["params"], nova.server["params"]) > 0.01


def test_local_statistics_stay_with_their_client_and_are_not_sent(make):
    asked = make(model=NORMED, bn="local", cohort=3)
    setup, state, _ = played(asked, rounds=1)
    _, shared, _ = played(asked.replace(bn="average"), rounds=1)
    chosen = set(setup.cohort(1).tolist())
    assert set(state.own_buffers) == chosen
    means = [own["body.1.running_mean"] for own in state.own_buffers.values()]
    assert all(gap(a, b) > 0 for a, b in itertools.combinations(means, 2))
    assert shared.own_buffers == {}
    bytes_of = [played(asked.replace(bn=bn), 1)[2]["bytes_up"] for bn in ("average", "local")]
    buffers = sum(leaf.numel() * leaf.element_size() for leaf in setup.buffers.values())
    assert bytes_of[0] - bytes_of[1] == 3 * buffers


def test_a_client_goes_on_from_its_own_statistics(make):
    asked = make(model=NORMED, bn="local")
    _, first, _ = played(asked, rounds=1)
    setup, second, _ = played(asked, rounds=2)
    for client, own in second.own_buffers.items():
        steps = setup.engine.steps(client)
        before = int(first.own_buffers[client]["body.1.num_batches_tracked"])
        assert int(own["body.1.num_batches_tracked"]) == before + steps == 2 * steps


def test_groupnorm_leaves_no_statistics_behind(make):
    setup, state, _ = played(make(model=NORMED, bn="groupnorm"), rounds=1)
    assert not setup.task.has_batch_norm
    assert state.buffers == {}
    assert set(setup.params) == {
        *("body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias"),
        *("head.weight", "head.bias"),
    }


def test_the_server_recalibrates_on_training_rows(make):
    setup, state, _ = played(make(model=NORMED, bn="server_recalibrate", batch_size=200), rounds=1)
    x, _ = setup.engine.trainer.examples.take(torch.from_numpy(np.concatenate(setup.engine.rows)))
    values = entering(setup.task, state.server["params"], x)
    assert torch.allclose(state.buffers["body.1.running_mean"], values.mean(0), atol=1e-5)
    assert torch.allclose(state.buffers["body.1.running_var"], values.var(0), rtol=1e-4)


@pytest.mark.parametrize("bn", ["average", "pooled", "local", "server_recalibrate", "groupnorm"])
def test_a_normalised_model_learns_under_every_rule(make, folder, bn):
    result = run(make(model=NORMED, bn=bn, rounds=3, eval_every=3), folder)
    assert result.accuracy > 0.6
    assert not events(folder, "eval")[-1]["diverged"]
