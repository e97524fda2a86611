import json
import math

import pytest

from fedloom.errors import RunDirectoryError
from fedloom.record import jsonio
from fedloom.reporting.gather import gather
from tests.unit.reporting.synthetic import write_local, write_run


def only(path):
    (run,) = gather(path).runs
    return run


def test_each_metric_stands_against_its_own_rounds(tmp_path):
    run = only(write_run(tmp_path / "a", rounds=20, eval_every=5))
    assert run.curve("accuracy").rounds == (5, 10, 15, 20)
    assert run.curve("train_loss").rounds == tuple(range(1, 21))


def test_what_is_not_finite_is_a_gap_in_the_curve(tmp_path):
    run = only(write_run(tmp_path / "a", accuracy=[0.3, None, 0.5]))
    values = run.curve("accuracy").values
    assert values[::2] == (0.3, 0.5)
    assert math.isnan(values[1])


def test_a_round_written_twice_counts_once_and_as_written_last(tmp_path):
    path = write_run(tmp_path / "a", accuracy=[0.3, 0.5], traffic=100)
    again = {"event": "round", "round": 2, "bytes_up": 7, "bytes_down": 0, "seconds": 1.0}
    with (path / "events.jsonl").open("a") as file:
        file.write(json.dumps(again) + "\n")
    run = only(path)
    assert [event["round"] for event in run.rounds] == [1, 2]
    assert run.spent("bytes") == {0: 0, 1: 100, 2: 107}


def test_a_cut_last_line_is_left_out_and_said(tmp_path):
    path = write_run(tmp_path / "a", accuracy=[0.3, 0.5])
    with (path / "events.jsonl").open("a") as file:
        file.write('{"event": "rou')
    run = only(path)
    assert len(run.rounds) == 2
    assert any("cut off" in note for note in run.notes)


def test_a_damaged_result_leaves_the_run_out_of_every_mean_and_is_named(tmp_path):
    path = write_run(tmp_path / "a")
    (path / "result.json").write_text('{"status": NaN}')
    run = only(path)
    assert run.excluded == "damaged"
    assert any("result.json" in note for note in run.notes)


def test_a_run_without_an_end_is_unfinished(tmp_path):
    path = write_run(tmp_path / "a", status="interrupted")
    assert only(path).excluded == "interrupted"


def test_a_run_named_twice_is_read_once(tmp_path):
    path = write_run(tmp_path / "a")
    assert len(gather([path, path, tmp_path / "." / "a"]).runs) == 1


def test_a_run_of_a_comparison_that_never_began_is_left_out_and_said(folder):
    record = jsonio.read_object(folder / "compare.json")
    jsonio.write(folder / "compare.json", {**record, "runs": [*record["runs"], "moon/trial-0"]})
    gathered = gather(folder)
    assert len(gathered.runs) == len(record["runs"])
    assert gathered.notes == ("moon/trial-0 was never begun: left out",)


def test_nothing_but_damage_is_an_error_that_names_the_file(tmp_path):
    path = write_run(tmp_path / "a")
    (path / "config.json").write_text("{")
    with pytest.raises(RunDirectoryError, match=r"config\.json"):
        gather(path)


def test_a_path_without_runs_is_an_error(tmp_path):
    with pytest.raises(RunDirectoryError):
        gather(tmp_path / "absent")


def test_an_unfinished_run_joins_the_row_of_its_neighbours(folder):
    (folder / "centralised" / "trial-2" / "result.json").unlink()
    (folder / "scaffold" / "trial-1" / "result.json").unlink()
    rows = {run.name: (run.role, run.label) for run in gather(folder).runs}
    assert rows["centralised/trial-2"] == ("centralised", "centralised")
    assert rows["scaffold/trial-1"] == ("method", "scaffold")


def test_local_accuracy_is_the_mean_over_clients_and_nothing_else_is_claimed(tmp_path):
    run = only(write_local(tmp_path / "a", [0.2, 0.4, 0.9]))
    assert run.final("accuracy") == pytest.approx(0.5)
    assert run.final("balanced_accuracy") is None
    assert run.curve("accuracy").rounds == (20,)
    assert run.curve("loss").rounds == ()
    assert run.per_class == []
    assert run.excluded is None


def test_a_constant_prediction_is_left_out(tmp_path):
    run = only(write_run(tmp_path / "a", result={"constant_prediction": "0"}))
    assert run.excluded == "constant prediction"
