import pytest

from fedloom.errors import ConfigError
from fedloom.reporting.gather import gather
from fedloom.reporting.summary import compare
from tests.unit.reporting.synthetic import write_compare, write_run


def test_a_comparison_is_one_setting_with_its_references_apart(comparison):
    assert [row.name for row in comparison.rows] == ["fedavg", "fedprox(mu=0.01)", "scaffold"]
    assert [row.name for row in comparison.references] == ["centralised", "local"]
    assert all(len(row.runs) == 3 for row in comparison.rows)


def test_data_and_partition_make_settings(tmp_path):
    for name, config in {
        "a": {},
        "b": {"partition": "iid"},
        "c": {"data": "mnist"},
    }.items():
        write_run(tmp_path / name, config=config)
    made = compare(gather(str(tmp_path / "*")).runs)
    assert [(one.data, one.partition) for one in made] == [
        ("adult", "label_dirichlet(alpha=0.5)"),
        ("adult", "iid"),
        ("mnist", "label_dirichlet(alpha=0.5)"),
    ]


def test_hyperparameters_that_differ_make_rows_and_name_them(tmp_path):
    write_run(tmp_path / "a")
    write_run(tmp_path / "b", config={"lr": 0.1})
    write_run(tmp_path / "c", seed=1)
    (one,) = compare(gather(str(tmp_path / "*")).runs)
    assert [row.full for row in one.rows] == ["fedavg (lr = 0.01)", "fedavg (lr = 0.1)"]
    assert [len(row.runs) for row in one.rows] == [2, 1]


def test_options_behind_a_short_label_are_told(tmp_path):
    write_run(tmp_path / "a", "fedprox(mu=0.1)", result={"label": "fedprox"})
    (one,) = compare(gather(tmp_path / "a").runs)
    assert one.rows[0].full == "fedprox (mu = 0.1)"


def test_an_option_tuned_for_each_trial_stays_one_row_of_a_comparison(tmp_path):
    folder = write_compare(tmp_path / "c", {"fedprox": [0.8, 0.9]}, local=False)
    for seed, mu in enumerate((0.01, 0.1)):
        path = folder / "fedprox" / f"trial-{seed}"
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
        write_run(path, f"fedprox(mu={mu})", seed=seed, result={"label": "fedprox"})
    (one,) = compare(gather(folder).runs)
    assert [row.full for row in one.rows] == ["fedprox (mu = 0.01 / 0.1 by trial)"]


def test_fedavg_is_the_baseline_wherever_it_stands(tmp_path):
    folder = write_compare(tmp_path / "c", {"scaffold": [0.8], "fedavg": [0.9]}, local=False)
    (one,) = compare(gather(folder).runs)
    assert one.baseline is one.rows[1]


def test_without_fedavg_the_first_row_is_the_baseline(tmp_path):
    folder = write_compare(tmp_path / "c", {"scaffold": [0.8], "moon": [0.9]}, local=False)
    (one,) = compare(gather(folder).runs)
    assert one.baseline is one.rows[0]


def test_any_row_may_be_named_as_baseline(folder):
    (one,) = compare(gather(folder).runs, baseline="FedProx(mu=0.01)")
    assert one.baseline is one.rows[1]


def test_an_unknown_baseline_is_refused_with_the_nearest(folder):
    with pytest.raises(ConfigError, match="did you mean 'scaffold'"):
        compare(gather(folder).runs, baseline="scafold")


@pytest.mark.parametrize("target", [0, -0.1, 1.01, 85])
def test_a_target_that_is_no_share_is_refused(folder, target):
    with pytest.raises(ConfigError, match="target accuracy"):
        compare(gather(folder).runs, target=target)


def test_the_default_target_is_what_the_baseline_ends_at_rounded_down(tmp_path):
    write_run(tmp_path / "a", accuracy=[0.5, 0.847])
    (one,) = compare(gather(tmp_path / "a").runs)
    assert one.target == 0.84


def test_runs_that_do_not_count_are_in_no_mean(tmp_path):
    write_run(tmp_path / "a", accuracy=[0.5, 0.8], seed=0)
    write_run(tmp_path / "b", accuracy=[0.5, 0.9], seed=1)
    write_run(tmp_path / "c", accuracy=[0.5, 0.1], seed=2, status="diverged")
    write_run(tmp_path / "d", accuracy=[0.5, 0.1], seed=3, result={"constant_prediction": "no"})
    (one,) = compare(gather(str(tmp_path / "*")).runs)
    row = one.rows[0]
    assert row.final("accuracy").mean == pytest.approx(0.85)
    assert row.count == "2 of 4"
    assert row.excluded == {"diverged": 1, "constant prediction": 1}
    assert row.band("accuracy").n == 2


def test_a_repeated_seed_is_a_trial_of_its_own(tmp_path):
    for name in "ab":
        write_run(tmp_path / name, seed=0)
    (one,) = compare(gather(str(tmp_path / "*")).runs)
    assert len(one.rows[0].usable) == 2


def test_costs_to_a_target_are_summed_up_to_the_round_that_reaches_it(tmp_path):
    write_run(tmp_path / "a", accuracy=[0.2, 0.6, 0.9], traffic=100, seconds=2.0)
    write_run(tmp_path / "b", accuracy=[0.2, 0.3, 0.4], seed=1)
    (one,) = compare(gather(str(tmp_path / "*")).runs, target=0.6)
    row = one.rows[0]
    reached = {key: row.reach(0.6, key) for key in ("rounds", "bytes", "seconds")}
    assert {key: reach.values for key, reach in reached.items()} == {
        "rounds": (2,),
        "bytes": (200,),
        "seconds": (4,),
    }
    assert reached["rounds"].trials == 2
