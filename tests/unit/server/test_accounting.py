"""Bytes, steps, examples and operations of a round."""

import numpy as np
import pytest

from fedloom.server.round import begin, run_round
from fedloom.server.setup import prepare
from tests.unit.server.small import NORMED, config

MNIST, ADULT = 44_426 * 4, 4_650 * 4


@pytest.fixture(scope="module")
def shaped(tmp_path_factory):
    """(shape of a row, classes) -> a file with ten training rows of that shape."""

    def write(shape, classes):
        path = tmp_path_factory.mktemp("shaped") / "rows.npz"
        y = np.arange(10) % classes
        x = np.random.RandomState(0).rand(10, *shape).astype(np.float32)
        np.savez(path, x_train=x, y_train=y, x_test=x, y_test=y)
        return str(path)

    return write


def costs(data, **changes):
    settings = {"partition": "iid", "clients": 10, "local_epochs": 1, "model": "auto", **changes}
    setup = prepare(config(data, **settings))
    return setup, run_round(setup, begin(setup), 1)[1]


@pytest.mark.parametrize("method", ["fedavg", "fedprox", "scaffold", "fednova"])
@pytest.mark.parametrize(
    ("shape", "classes", "model", "published"),
    [((1, 28, 28), 10, MNIST, 1.954744), ((123,), 2, ADULT, 0.2046)],
    ids=["MNIST", "adult"],
)
def test_the_published_traffic_is_ten_uploads_and_one_download(
    shaped, shape, classes, model, published, method
):
    _, fields = costs(shaped(shape, classes), method=method)
    times = 2 if method == "scaffold" else 1
    scalars = 10 * 2 * 4 if method == "fednova" else 0  # a normaliser and a count from each
    assert fields["niid_equivalent_bytes"] == 11 * model * times + scalars
    assert (fields["niid_equivalent_bytes"] - scalars) / 1e6 == pytest.approx(published * times)
    assert fields["bytes_up"] == 10 * model * times + scalars
    assert fields["bytes_down"] == 10 * model * times


def test_clients_that_train_alone_send_nothing(data):
    _, fields = costs(data, method="local", model=NORMED)
    assert fields["bytes_up"] == fields["bytes_down"] == fields["niid_equivalent_bytes"] == 0


def test_running_statistics_that_are_shared_are_counted(data):
    setup, fields = costs(data, model=NORMED)
    model = sum(leaf.numel() * 4 for leaf in setup.params.values())
    assert fields["bytes_down"] == fields["bytes_up"] == 10 * (model + 8 * 4 + 8 * 4 + 8)


@pytest.mark.parametrize("executor", ["loop", "mapped"])
def test_steps_and_examples_are_those_made(data, executor):
    changes = {"clients": 6, "local_epochs": 3, "batch_size": 7, "executor": executor}
    setup, fields = costs(data, **changes, cohort=4, model="linear")
    sizes = setup.sizes[fields["cohort"]]
    assert fields["steps"] == 3 * sum(-(-n // 7) for n in sizes)
    assert fields["examples"] == 3 * sum(sizes)
    assert fields["skipped_examples"] == 0


def test_a_fixed_number_of_steps_counts_the_examples_they_saw(data):
    changes = {"clients": 6, "local_epochs": None, "local_steps": 5, "batch_size": 40}
    setup, fields = costs(data, **changes, model="linear")
    assert fields["steps"] == 6 * 5
    assert fields["examples"] == 5 * sum(min(40, n) for n in setup.sizes)


def test_examples_that_cannot_be_normalised_are_counted_as_skipped(data):
    """150 rows at six clients of 25, batches of 8: one row is left over in each epoch."""
    setup, fields = costs(data, clients=6, model=NORMED, local_epochs=2)
    assert setup.sizes.tolist() == [25] * 6
    assert fields["skipped_examples"] == 6 * 2
    assert fields["examples"] == 2 * (150 - 6)
    assert fields["steps"] == 6 * 2 * 3


def test_operations_are_three_passes_of_two_a_multiply_add(data, folder):
    from fedloom.server.run import run
    from tests.unit.server.small import events

    run(config(data, model="mlp(hidden=[6])", rounds=1), folder)
    (line,) = events(folder, "round")
    assert line["flops"] == 3 * 2 * (4 * 6 + 6 * 3) * line["examples"]


def test_the_training_loss_is_the_mean_over_all_examples_of_all_steps(data):
    """At a rate too small to move anything it is the loss of the initial model."""
    for executor in ("loop", "mapped"):
        setup, fields = costs(data, lr=1e-12, executor=executor, model="linear", clients=7)
        x, y = setup.engine.trainer.examples.x, setup.engine.trainer.examples.y
        logits = setup.task.bind({}, training=False).logits(setup.params, {"x": x, "mask": None})
        import torch.nn.functional as F

        assert fields["train_loss"] == pytest.approx(float(F.cross_entropy(logits, y)), rel=1e-5)
