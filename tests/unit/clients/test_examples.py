"""Rows of a data set as batches of tensors, and augmentation."""

import itertools

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from fedloom.clients.batches import LocalWork, plan
from fedloom.clients.examples import NO_AUGMENT, PAD, Augment, Examples, Feed, form
from fedloom.clients.noise import NO_NOISE, Noise


def feed(rows, order, client=0, round=1, choices=None):
    return Feed(
        torch.from_numpy(rows[order.index]),
        torch.from_numpy(order.index),
        torch.from_numpy(order.count),
        choices,
        client,
        round,
    )


def images(n=6, channels=2, height=9, width=7):
    return torch.rand(n, channels, height, width, generator=torch.Generator().manual_seed(0))


def test_every_crop_is_a_window_of_the_reflected_image():
    x = images()
    height, width = x.shape[2:]
    reflected = np.pad(x.numpy(), [(0, 0), (0, 0), (PAD, PAD), (PAD, PAD)], mode="reflect")
    for top in range(2 * PAD + 1):
        for left in range(2 * PAD + 1):
            choices = torch.tensor([[top, left, 0]] * len(x))
            out = Augment(crop=True).apply(x, choices).numpy()
            window = reflected[:, :, top : top + height, left : left + width]
            assert np.array_equal(out, window)


def test_each_image_gets_its_own_choice_and_a_flip_mirrors_the_columns():
    x = images(4)
    choices = torch.tensor([[PAD, PAD, 0], [PAD, PAD, 1], [0, 3, 1], [0, 3, 0]])
    out = Augment(flip=True, crop=True).apply(x, choices)
    assert torch.equal(out[0], x[0])
    assert torch.equal(out[1], x[1].flip(-1))
    alone = Augment(crop=True).apply(x[2:3], choices[3:])
    assert torch.equal(out[2], alone[0].flip(-1))


def test_a_flip_alone_keeps_the_frame():
    x = images(2)
    out = Augment(flip=True).apply(x, torch.tensor([[0, 0, 1], [0, 0, 0]]))
    assert torch.equal(out, torch.stack([x[0].flip(-1), x[1]]))


def test_choices_cover_all_windows_and_half_are_flipped():
    order = plan(900, LocalWork(3, None, 30), seed=0, round=1, client=0)
    choices = Augment(flip=True, crop=True).draw(order, 0, 1, 0)
    assert choices.shape == (90, 30, 3)
    top, left, flip = choices.flatten(0, 1).unbind(-1)
    for offset in (top, left):
        counts = torch.bincount(offset, minlength=2 * PAD + 1).double()
        expected = len(offset) / (2 * PAD + 1)
        assert float((counts - expected).abs().max()) < 4 * expected**0.5
    assert float(flip.double().mean()) == pytest.approx(0.5, abs=4 * 0.5 / len(flip) ** 0.5)


def test_choices_depend_on_seed_round_and_client_alone():
    order = plan(20, LocalWork(1, None, 5), seed=0, round=1, client=0)
    augment = Augment(flip=True, crop=True)
    keys = [(0, 1, 0), (1, 1, 0), (0, 2, 0), (0, 1, 1)]
    drawn = [augment.draw(order, *key) for key in keys]
    assert all(not torch.equal(a, b) for i, a in enumerate(drawn) for b in drawn[:i])
    assert torch.equal(drawn[0], augment.draw(order, *keys[0]))
    assert NO_AUGMENT.draw(order, 0, 1, 0) is None


def test_bytes_become_shares_of_one_and_floats_stay():
    pixels = np.arange(256, dtype=np.uint8).reshape(1, 1, 16, 16)
    x, _ = Examples(pixels, np.zeros(1, np.int64)).take(torch.tensor([0]))
    assert torch.equal(x.flatten(), torch.arange(256) / 255)
    table = np.array([[0.25, -3.0]], np.float32)
    assert torch.equal(
        Examples(table, np.zeros(1, np.int64)).take(torch.tensor([0]))[0], torch.tensor(table)
    )


def test_lanes_hold_each_clients_own_batch_with_its_padding_marked():
    x = np.arange(40, dtype=np.float32)[:, None]
    y = np.arange(40) % 3
    rows = [np.arange(0, 26), np.arange(26, 40)]
    work = LocalWork(1, None, 8)
    orders = [plan(len(r), work, seed=0, round=1, client=c) for c, r in enumerate(rows)]
    feeds = [feed(r, o, c) for c, (r, o) in enumerate(zip(rows, orders, strict=True))]
    batch = form(Examples(x, y), feeds, [2, 0], 2, NO_AUGMENT, NO_NOISE)
    assert batch["x"].shape == (2, 2, 8, 1)
    assert batch["mask"].sum(-1).tolist() == [[8, 8], [2, 6]]
    for step, lane in itertools.product(range(2), range(2)):
        expected = rows[lane][orders[lane].index[(2, 0)[lane] + step]]
        assert batch["x"][step, lane, :, 0].tolist() == expected.tolist()
        assert batch["y"][step, lane].tolist() == y[expected].tolist()


def test_augmented_batches_are_each_image_by_its_own_choice():
    pixels = (images(10, 1, 8, 8) * 255).byte().numpy()
    examples = Examples(pixels, np.zeros(10, np.int64))
    augment = Augment(flip=True, crop=True)
    order = plan(10, LocalWork(2, None, 4), seed=0, round=1, client=0)
    choices = augment.draw(order, 0, 1, 0)
    here = feed(np.arange(10), order, choices=choices)
    batch = form(examples, [here], [0], len(order.count), augment, NO_NOISE)
    for step, spot in itertools.product(range(len(order.count)), range(4)):
        image, _ = examples.take(torch.tensor([order.index[step, spot]]))
        alone = augment.apply(image, choices[step, spot][None])
        assert torch.equal(batch["x"][step, 0, spot], alone[0])


def test_batches_formed_together_are_those_formed_one_by_one():
    pixels = (images(10, 1, 8, 8) * 255).byte().numpy()
    examples = Examples(pixels, np.arange(10))
    augment, noise = Augment(flip=True, crop=True), Noise([0.2], [10], 0, "each_access")
    order = plan(10, LocalWork(2, None, 4), seed=0, round=1, client=0)
    here = feed(np.arange(10), order, choices=augment.draw(order, 0, 1, 0))
    steps = len(order.count)
    together = form(examples, [here], [0], steps, augment, noise)
    for step in range(steps):
        alone = form(examples, [here], [step], 1, augment, noise)
        assert all(torch.equal(together[key][step], alone[key][0]) for key in together)


def test_read_only_arrays_are_shared_and_never_written():
    x = np.random.RandomState(0).rand(6, 3).astype(np.float32)
    x.flags.writeable = False
    held = Examples(x, np.zeros(6, np.int64))
    assert held.x.data_ptr() == x.__array_interface__["data"][0]
    taken, _ = held.take(torch.tensor([0, 5]))
    taken.zero_()
    assert x[0].any()
    assert x[5].any()


def test_sparse_rows_are_dense_in_a_batch_only():
    dense = np.random.RandomState(0).rand(8, 5).astype(np.float32)
    dense[dense < 0.6] = 0
    held = Examples(csr_matrix(dense), np.arange(8))
    x, y = held.take(torch.tensor([6, 1, 1]))
    assert np.array_equal(x.numpy(), dense[[6, 1, 1]])
    assert y.tolist() == [6, 1, 1]
    assert isinstance(held.x, csr_matrix)
