"""What is measured after a round, and what of it is reported."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedloom import tree
from fedloom.server.evaluate import evaluate
from fedloom.server.round import begin
from fedloom.server.run import run
from fedloom.server.scoring import has_personal, score_personal, score_round
from fedloom.server.setup import all_rows, prepare
from fedloom.server.summary import summarise
from tests.unit.server.small import TEST, broken, events


def always(setup, label):
    """A model that gives one class to every row."""
    params = tree.zeros_like(setup.params)
    params["head.bias"] = params["head.bias"].clone()
    params["head.bias"][label] = 1.0
    return params


def remembering(setup, own):
    """The state before the first round, with these memories."""
    state = begin(setup)
    return replace(state, memories=state.memories.updated(own))


def test_means_over_clients_are_given_both_by_clients_and_by_examples(make):
    """One client's model is right on its class only, the others' on another: both means by hand."""
    setup = prepare(make(method="local"))
    own = {c: {"own": always(setup, 0 if c == 0 else 1)} for c in range(len(setup.sizes))}
    line = score_personal(setup, remembering(setup, own), 3)
    shares = np.bincount(setup.dataset.y_test, minlength=3) / TEST
    expected = [shares[0]] + [shares[1]] * (len(setup.sizes) - 1)
    assert line["per_client"] == pytest.approx(expected)
    assert line["accuracy_mean"] == pytest.approx(np.mean(expected))
    assert line["accuracy_weighted"] == pytest.approx(np.average(expected, weights=setup.sizes))
    assert line["num_clients"] == len(setup.sizes)


def test_clients_that_are_one_group_are_scored_under_its_name(make):
    setup = prepare(make(method="local", partition="by_group", clients=None, client="who"))
    line = score_personal(setup, begin(setup), 0)
    held = [setup.dataset.groups_train[setup.partition.rows(i)] for i in range(len(setup.sizes))]
    assert [{setup.dataset.groups[g] for g in part} for part in held] == [
        {name} for name in line["client_names"]
    ]
    other = prepare(make(method="local"))
    assert "client_names" not in score_personal(other, begin(other), 0)


def test_one_clients_own_model_moves_that_clients_score_alone(make):
    setup = prepare(make(method="local"))
    own = {c: {"own": always(setup, 1)} for c in range(len(setup.sizes))}
    before = score_personal(setup, remembering(setup, own), 1)["per_client"]
    own[2] = {"own": tree.scale(setup.params, -1.0)}
    after = score_personal(setup, remembering(setup, own), 1)["per_client"]
    assert [i for i, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] in (
        [2],
        [],
    )
    own[2] = {"own": tree.scale(setup.params, float("nan"))}
    line = score_personal(setup, remembering(setup, own), 1)
    assert line["per_client"][2] is None
    assert line["num_clients"] == len(setup.sizes) - 1


def test_only_clients_with_models_of_their_own_are_scored_apart(make, tmp_path):
    for method, count in (("fedavg", 0), ("local", 1)):
        asked = make(method=method, rounds=2)
        assert has_personal(prepare(asked).method) == bool(count)
        run(asked, tmp_path / method)
        assert len(events(tmp_path / method, "personal")) == count


def test_the_union_of_noisy_test_sets_has_a_copy_of_every_row_for_each_client(make):
    setup = prepare(make(noise=2.0, test_noise="both"))
    state = begin(setup)
    clean, noisy = score_round(setup, state, 1)
    assert (clean["split"], clean["num_examples"]) == ("test", TEST)
    assert (noisy["split"], noisy["num_examples"]) == ("test_noise", TEST * len(setup.sizes))
    assert noisy["loss"] != clean["loss"]
    quiet = prepare(make())
    assert score_round(quiet, begin(quiet), 1)[0]["loss"] == clean["loss"]


@pytest.mark.parametrize(
    ("test_noise", "splits", "reported"),
    [
        ("clean", ["test"], "test"),
        ("both", ["test", "test_noise"], "test"),
        ("party_union", ["test", "test_noise"], "test_noise"),
    ],
)
def test_which_test_rows_are_reported_is_declared(make, folder, test_noise, splits, reported):
    result = run(make(noise=0.5, test_noise=test_noise, rounds=1), folder).result
    lines = [e for e in events(folder, "eval") if e["round"] == 1]
    assert [e["split"] for e in lines] == splits
    assert result["reported_split"] == reported
    last = next(e for e in lines if e["split"] == reported)
    assert result["final"]["accuracy"] == last["accuracy"]
    assert result["test_noise"] == (None if test_noise == "clean" else test_noise)


@pytest.mark.parametrize("batch", [1, 7, 60])
def test_no_score_depends_on_the_batch_size_of_the_evaluation(make, batch):
    whole = prepare(make(noise=0.5, test_noise="both", validation=0.2))
    parts = prepare(make(noise=0.5, test_noise="both", validation=0.2, eval_batch=batch))
    expected, found = (score_round(s, begin(s), 1) for s in (whole, parts))
    for one, other in zip(expected, found, strict=True):
        assert one["accuracy"] == other["accuracy"]
        assert one["per_class_accuracy"] == other["per_class_accuracy"]
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-6)


def test_validation_rows_are_those_that_nobody_trains_on(make):
    setup = prepare(make(validation=0.2))
    trained = np.concatenate(setup.engine.rows)
    assert not set(trained.tolist()) & set(setup.validation_rows.tolist())
    assert len(trained) + len(setup.validation_rows) == setup.dataset.num_train
    line = score_round(setup, begin(setup), 1)[-1]
    assert line["split"] == "validation"
    rows = torch.from_numpy(setup.validation_rows)
    scores = evaluate(setup.task, setup.params, {}, setup.engine.trainer.examples, rows, 10)
    assert line["accuracy"] == scores.accuracy
    assert len(all_rows(setup.test)) == TEST


def told(accuracies, diverged=()):
    """A record with these accuracies in rounds 1, 2, ..."""
    lines = []
    for round, accuracy in enumerate(accuracies, 1):
        costs = dict.fromkeys(
            ("bytes_up", "bytes_down", "niid_equivalent_bytes", "flops", "steps"), 10 * round
        )
        seconds = dict.fromkeys(("examples", "skipped_examples", "seconds", "server_seconds"), 1)
        lines.append({"event": "round", "round": round, "refused": [], **costs, **seconds})
        scores = dict.fromkeys(("balanced_accuracy", "macro_f1", "loss"), 0.5)
        lines.append(
            {
                "event": "eval",
                "split": "test",
                "round": round,
                "accuracy": accuracy,
                "diverged": round in diverged,
                "constant_prediction": None,
                "seconds": 2.0,
                **scores,
            }
        )
    return lines


def summed(setup, lines, **changes):
    options = {"status": "finished", "label": "x", "role": "method", **changes}
    return summarise(setup, lines, **options)


def test_the_last_round_is_the_result_and_the_best_is_called_optimistic(make):
    accuracies = [0.3, 0.9, 0.5, 0.7, 0.6, 0.4, 0.65]
    found = summed(prepare(make()), told(accuracies))
    assert (found["final"]["round"], found["final"]["accuracy"]) == (7, 0.65)
    assert (found["best"]["round"], found["best"]["accuracy"]) == (2, 0.9)
    assert "optimistic" in found["best"]["note"]
    assert found["mean_last_5"] == pytest.approx(np.mean(accuracies[-5:]))
    assert found["bytes_up"] == 10 * sum(range(1, 8))
    assert found["evaluation_seconds"] == 14.0


def test_a_diverged_run_is_marked_and_has_no_score(make):
    found = summed(prepare(make()), told([0.5, 0.6]), status="diverged", reason="why")
    assert found["final"] is None
    assert (found["diverged"], found["diverged_round"], found["reason"]) == (True, 3, "why")
    assert found["best"]["accuracy"] == 0.6
    marked = summed(prepare(make()), told([0.5, 0.33], diverged=[2]))
    assert marked["final"] is None
    assert (marked["diverged"], marked["diverged_round"]) == (True, 2)
    assert marked["best"]["round"] == 1


def test_the_published_preset_keeps_the_number_of_a_diverged_run_and_flags_it(make):
    found = summed(prepare(make(on_nonfinite="ignore")), told([0.5, 0.33], diverged=[2]))
    assert found["final"]["accuracy"] == 0.33
    assert found["diverged"] is True


def test_the_constant_baseline_is_the_share_of_the_most_frequent_test_class(make):
    setup = prepare(make())
    shares = np.bincount(setup.dataset.y_test) / TEST
    assert summed(setup, told([0.5]))["constant_baseline"] == shares.max()


def test_clients_that_train_alone_report_their_mean_and_no_global_model(make, folder):
    result = run(make(method="local", rounds=2), folder, role="local")
    assert result.result["final"] is None
    assert result.accuracy == events(folder, "personal")[-1]["accuracy_mean"]


def test_nothing_is_reported_of_a_run_without_an_evaluation(make, folder):
    broken(make(), folder, at=1)
    assert not (folder / "result.json").exists()
