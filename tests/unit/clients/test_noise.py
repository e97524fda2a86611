"""Gaussian noise on features: when it is drawn, and how strong it is."""

import numpy as np
import pytest
import torch

from fedloom.clients.batches import LocalWork, plan
from fedloom.clients.examples import NO_AUGMENT, Examples, Feed, form
from fedloom.clients.noise import NO_NOISE, Noise
from fedloom.partition.feature import noise_std

SHAPE = (1, 4, 4)
SIZES = [30, 50, 40]


def noise(refresh="fixed", sigma=0.1, seed=0):
    return Noise(noise_std("niid_code", sigma, 3), SIZES, seed, refresh)


def at(*rows):
    return torch.tensor(rows)


def test_fixed_noise_belongs_to_the_row_and_not_to_the_visit():
    here = noise()
    first = here.draw(1, 1, 0, at(3, 7, 20), SHAPE)
    assert torch.equal(first, here.draw(1, 9, 4, at(3, 7, 20), SHAPE))
    assert torch.equal(first.flip(0), here.draw(1, 2, 1, at(20, 7, 3), SHAPE))
    another = noise()
    another.draw(2, 1, 0, at(0), SHAPE)  # a client visited before
    assert torch.equal(first, another.draw(1, 1, 0, at(3, 7, 20), SHAPE))


def test_fixed_noise_that_was_let_go_comes_back_the_same(monkeypatch):
    whole, bounded = noise(), noise()
    rows = at(3, 7, 20)
    expected = {client: whole.draw(client, 1, 0, rows, SHAPE) for client in (1, 2)}
    monkeypatch.setattr("fedloom.clients.noise.KEPT_VALUES", 16 * 50)  # of client 1 alone
    for client in (1, 2, 1, 1, 2):
        assert torch.equal(bounded.draw(client, 1, 0, rows, SHAPE), expected[client])
        assert list(bounded._kept) == [client]


def test_noise_at_each_access_is_new_in_each_round_and_step_and_repeats_with_the_seed():
    here = noise("each_access")
    drawn = {
        tuple(here.draw(1, round, step, at(3, 7), SHAPE).flatten().tolist())
        for round in (1, 2)
        for step in (0, 1)
    }
    assert len(drawn) == 4
    again = noise("each_access").draw(1, 1, 0, at(3, 7), SHAPE)
    assert tuple(again.flatten().tolist()) in drawn


@pytest.mark.parametrize("refresh", ["fixed", "each_access"])
def test_noise_differs_between_clients_and_seeds(refresh):
    rows = at(*range(30))
    draws = [
        noise(refresh, seed=seed).draw(client, 1, 0, rows, SHAPE) / level
        for seed in (0, 1)
        for client, level in ((1, 0.05), (2, 0.1))
    ]
    assert all(abs(float((a * b).mean())) < 0.2 for i, a in enumerate(draws) for b in draws[:i])


@pytest.mark.parametrize("refresh", ["fixed", "each_access"])
@pytest.mark.parametrize("rule", ["niid_code", "paper", "summary"])
def test_the_deviation_of_each_client_is_the_rules(refresh, rule):
    std = noise_std(rule, 0.2, 4)
    here = Noise(std, [60] * 4, 0, refresh)
    rows, shape = at(*range(60)), (3, 16, 16)  # 46,080 values
    for client, level in enumerate(std):
        drawn = here.draw(client, 1, 0, rows, shape)
        assert float(drawn.std()) == pytest.approx(level, rel=0.02)
        assert abs(float(drawn.mean())) <= 0.03 * level


@pytest.mark.parametrize("refresh", ["fixed", "each_access"])
def test_noise_of_a_test_row_is_the_same_for_every_batch_size(refresh):
    whole = noise(refresh).test(2, 3, 0, (1203, 5))
    for size in (1, 7, 500, 1000, 1203):
        blocks = [
            noise(refresh).test(2, 3, first, (min(size, 1203 - first), 5))
            for first in range(0, 1203, size)
        ]
        assert torch.equal(torch.cat(blocks), whole)
    assert float(whole.std()) == pytest.approx(0.1, rel=0.05)
    assert len(torch.unique(whole)) > 0.99 * whole.numel()


def test_test_noise_is_redrawn_in_each_round_only_when_asked():
    for refresh, same in (("fixed", True), ("each_access", False)):
        first, later = (noise(refresh).test(2, round, 0, (20, 5)) for round in (1, 2))
        assert torch.equal(first, later) is same


def test_batches_with_fixed_noise_are_batches_of_other_data():
    """What a client sees with noise is, row by row, the same noisy data set in every epoch."""
    x = np.random.RandomState(0).rand(sum(SIZES), *SHAPE).astype(np.float32)
    examples = Examples(x, np.zeros(len(x), np.int64))
    mine = np.arange(SIZES[0], SIZES[0] + SIZES[1])
    here = noise()
    fixed = x[mine] + here.draw(1, 0, 0, torch.arange(SIZES[1]), SHAPE).numpy()
    order = plan(SIZES[1], LocalWork(2, None, 8), seed=0, round=1, client=1)
    feed = Feed(
        torch.from_numpy(mine[order.index]),
        torch.from_numpy(order.index),
        torch.from_numpy(order.count),
        None,
        1,
        1,
    )
    batch = form(examples, [feed], [0], len(order.count), NO_AUGMENT, here)
    assert np.array_equal(batch["x"][:, 0].numpy(), fixed[order.index])


def test_no_noise_is_inactive_and_a_level_of_zero_adds_nothing():
    assert not NO_NOISE.active
    assert not noise(sigma=0.0).active
    assert float(noise().draw(0, 1, 0, at(1, 2), SHAPE).abs().max()) == 0
