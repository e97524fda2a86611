import numpy as np
import pytest
import torch

from fedloom import data
from fedloom.errors import ConfigError


def octants(x):
    return np.bincount(((x >= 0) @ [4, 2, 1]).astype(int), minlength=8)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_fcube_has_exactly_500_points_in_each_octant(seed):
    cube = data.load("fcube", seed=seed)
    assert octants(cube.x_train).tolist() == [500] * 8
    assert cube.x_train.shape == (4000, 3)
    assert cube.x_test.shape == (1000, 3)
    assert np.abs(cube.x_train).max() <= 1


def test_fcube_is_labelled_by_the_sign_of_its_first_coordinate():
    plain, turned = data.load("fcube"), data.load("fcube(sign=-1)")
    assert np.array_equal(plain.y_test, (plain.x_test[:, 0] >= 0).astype(int))
    assert np.array_equal(plain.x_train, turned.x_train)
    assert np.array_equal(plain.y_train, 1 - turned.y_train)
    assert np.bincount(plain.y_train).tolist() == [2000, 2000]


def test_fcube_test_points_are_uniform_in_the_cube():
    mean = data.load("fcube").x_test.mean(axis=0)
    assert np.abs(mean).max() < 5 * np.sqrt(1 / 3 / 1000)  # false alarm below 2e-6


@pytest.mark.parametrize("name", ["fcube", "blobs", "digits"])
def test_generated_sets_repeat_and_follow_the_seed(name):
    first = data.load(name).digest
    assert data.load(name).digest == first
    assert (data.load(name, seed=1).digest == first) == (name == "digits")


def test_digits_are_1797_grey_images_split_by_class():
    digits = data.load("digits")
    assert digits.num_train + digits.num_test == 1797
    assert digits.input_shape == (1, 8, 8)
    assert digits.x_train.dtype == np.uint8
    assert (digits.x_train.min(), digits.x_train.max()) == (0, 255)
    both = np.bincount(digits.y_train) + np.bincount(digits.y_test)
    assert both.tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.abs(np.bincount(digits.y_test) - both / 5).max() < 1


def test_blobs_have_equal_classes():
    blobs = data.load("blobs")
    assert np.bincount(blobs.y_train).tolist() == [1000] * 10
    assert np.bincount(blobs.y_test).tolist() == [400] * 10
    assert blobs.input_shape == (20,)


def test_a_small_network_reaches_98_percent_on_blobs():
    blobs = data.load("blobs")
    x, y = torch.tensor(blobs.x_train), torch.tensor(blobs.y_train)
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(20, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 10),
    )
    optimizer = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, weight_decay=1e-5)
    for _ in range(10):
        for rows in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimizer.step()
    right = net(torch.tensor(blobs.x_test)).argmax(1) == torch.tensor(blobs.y_test)
    assert 0.965 < right.float().mean() < 0.995


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fcube(sign=2)", "expected 1 or -1"),
        ("fcube(sides=3)", "unknown or unfit option"),
        ("blobs(spread=0)", "above 0"),
        ("mnist(spread=1)", "has no option 'spread'"),
        ("mnits", "did you mean 'mnist'"),
    ],
)
def test_options_that_do_not_exist_are_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        data.load(text)


def test_settings_for_files_are_refused_for_named_sets():
    with pytest.raises(ConfigError, match=r"label, missing can't be used here.*seed"):
        data.load("fcube", label="y", missing="drop")


def test_unknown_settings_name_the_nearest_one():
    with pytest.raises(ConfigError, match="did you mean 'separator'"):
        data.load("fcube", seperator=";")


def test_every_name_has_a_line_with_its_source():
    names = data.names()
    assert {"fcube", "digits", "blobs", "mnist", "adult", "rcv1", "covtype", "svhn"} <= set(names)
    assert all(len(line) > 20 for line in names.values())
