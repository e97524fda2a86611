"""Commands run for real, on the smallest input there is."""

import json

import pytest

from fedloom.cli.hints import with_flags
from fedloom.cli.show import summary
from fedloom.version import __version__

SMALL = ("--rounds", "1", "--local-epochs", "1", "--quiet")


def test_version(cli):
    assert cli("--version").output.strip() == f"fedloom {__version__}"


@pytest.mark.parametrize(
    "kind", ["methods", "partitions", "datasets", "models", "samplers", "schedules", "presets"]
)
def test_each_list_names_what_there_is(cli, kind):
    result = cli("list", kind)
    assert result.exit_code == 0, result.output
    assert cli("list", kind.upper()).exit_code == 0
    assert len(result.output.splitlines()) > 3


@pytest.mark.parametrize("kind", ["methods", "partitions", "models", "presets"])
def test_what_comes_from_a_paper_says_so(cli, kind):
    assert "arXiv" in cli("list", kind).output


def test_an_unknown_list_is_refused(cli):
    result = cli("list", "methos")
    assert result.exit_code == 2
    assert "did you mean 'methods'" in result.output


def test_a_run_ends_with_its_result_and_gets_a_folder_of_its_own(cli, tmp_path):
    first = cli("run", *SMALL, "--method", "fedprox", "--mu", "0.1")
    second = cli("run", *SMALL, "--method", "fedprox", "--mu", "0.1")
    assert first.exit_code == second.exit_code == 0, first.output
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "fcube-iid-fedprox-001",
        "fcube-iid-fedprox-002",
    ]
    assert "after round 1 (the result)" in first.output
    assert "optimistic: not the result" in first.output


def test_a_folder_with_a_run_is_not_written_again_unless_asked(cli):
    assert cli("run", *SMALL, "--out", "here").exit_code == 0
    refused = cli("run", *SMALL, "--out", "here")
    assert refused.exit_code == 5
    assert "overwrite" in refused.output
    assert cli("run", *SMALL, "--out", "here", "--overwrite").exit_code == 0


def test_resume_needs_the_folder_alone_and_refuses_another_experiment(cli, tmp_path):
    assert cli("run", *SMALL, "--seed", "7", "--out", "here").exit_code == 0
    changed = cli("run", "--resume", "--out", "here", "--lr", "0.5", "--quiet")
    assert changed.exit_code == 5
    assert "lr" in changed.output
    longer = cli("run", "--resume", "--out", "here", "--rounds", "2", "--quiet")
    assert longer.exit_code == 0, longer.output
    stored = json.loads((tmp_path / "here" / "config.json").read_text())
    assert (stored["seed"], stored["rounds"]) == (7, 2)


def test_a_diverged_run_has_code_4(cli):
    result = cli("run", "--lr", "1e30", "--rounds", "3", "--quiet", "--out", "here")
    assert result.exit_code == 4, result.output
    assert "diverged" in result.output


def test_data_and_partitions_that_cannot_be_used_have_code_3_and_leave_no_folder(cli, tmp_path):
    assert cli("run", *SMALL, "--data", "absent.csv", "--label", "y").exit_code == 3
    impossible = cli("run", *SMALL, "--partition", "iid", "--clients", "5000")
    assert impossible.exit_code == 3
    assert "Traceback" not in impossible.output
    assert not list((tmp_path / "runs").iterdir())


def test_the_unexpected_is_one_line_and_a_traceback_on_request(cli, monkeypatch):
    from fedloom.server import plan

    def fail(config):
        raise RuntimeError("sky\nfell")

    monkeypatch.setattr(plan, "plan", fail)
    result = cli("run", "--dry-run")
    assert result.exit_code == 1
    assert result.output.strip() == (
        "error: unexpected RuntimeError: sky fell; "
        "repeat the command with --debug for the traceback"
    )
    shown = cli("run", "--dry-run", "--debug")
    assert shown.exit_code == 1
    assert "Traceback" in shown.output


def test_a_plan_says_what_a_run_would_take_and_leaves_nothing(cli, tmp_path):
    result = cli("run", "--dry-run", "--rounds", "7")
    assert result.exit_code == 0, result.output
    for words in ("clients", "steps", "bytes", "memory", "time"):
        assert words in result.output
    assert not list(tmp_path.iterdir())


def test_a_comparison_prints_its_table_and_writes_its_page(cli, tmp_path):
    result = cli(
        *("compare", *SMALL, "--methods", "fedavg,fedprox", "--trials", "1", "--no-reference"),
        *("--out", "here"),
    )
    assert result.exit_code == 0, result.output
    assert "fedprox" in result.output
    assert (tmp_path / "here" / "report.html").exists()
    again = cli("report", "here", "--out", "page", "--baseline", "fedavg", "--target", "0.5")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "page" / "table.csv").exists()


def test_a_comparison_with_a_diverged_run_says_so_in_its_code(cli):
    result = cli(
        *("compare", "--methods", "fedavg,fedavg(server_lr=1e38)", "--trials", "1", "--quiet"),
        *("--rounds", "3", "--local-epochs", "1", "--no-reference", "--out", "here"),
    )
    assert result.exit_code == 4, result.output
    assert "1 of 2 runs diverged" in result.output


def test_report_refuses_what_holds_no_run(cli, tmp_path):
    assert cli("report", "nowhere").exit_code == 2
    (tmp_path / "empty").mkdir()
    assert cli("report", "empty").exit_code == 5
    assert cli("report", "empty", "--target", "95").exit_code == 2


def test_inspect_shows_a_file_or_says_why_not(cli, tmp_path):
    rows = "\n".join(f"{i},{i % 7},{'ab'[i % 2]}" for i in range(20))
    (tmp_path / "good.csv").write_text("x,z,kind\n" + rows + "\n")
    good = cli("data", "inspect", "good.csv", "--label", "kind")
    assert good.exit_code == 0, good.output
    assert "kind" in good.output
    bad = cli("data", "inspect", "good.csv", "--label", "knd")
    assert bad.exit_code in (2, 3)
    assert "kind" in bad.output
    assert "Traceback" not in bad.output


def test_a_partition_is_made_shown_drawn_and_kept(cli, tmp_path):
    result = cli(
        *("partition", "--data", "fcube", "--partition", "label-dirichlet", "--alpha", "0.5"),
        *("--clients", "3", "--heatmap", "counts.png", "--save", "kept/split"),
    )
    assert result.exit_code == 0, result.output
    assert "label_dirichlet(alpha=0.5)" in result.output
    assert (tmp_path / "counts.png").stat().st_size > 0
    assert json.loads((tmp_path / "kept" / "split.json").read_text())


def test_a_flag_that_is_no_setting_of_a_partition_is_refused(cli):
    assert cli("partition", "--server-lr", "2").exit_code == 2


STUDY = """
data = "rows.csv"
label = "kind"
partition = "label_dirichlet(alpha=0.5)"
clients = 3
rounds = 2

[method]
name = "fedprox"

[compare]
methods = ["fedavg"]
"""


@pytest.fixture
def study(tmp_path):
    """A file of settings with a table of its own, and the data that it names."""
    rows = "\n".join(f"{i},{i % 7},{'ab'[i % 2]}" for i in range(90))
    (tmp_path / "rows.csv").write_text("x,z,kind\n" + rows + "\n")
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


def test_a_partition_from_a_file_is_that_of_the_same_flags_and_flags_win(cli, study):
    flags = ("--data", "rows.csv", "--label", "kind", "--partition", "label_dirichlet(alpha=0.5)")
    by_file, by_flags = cli("partition", "--config", study), cli("partition", *flags, "--clients=3")
    assert by_file.exit_code == 0, by_file.output
    assert by_file.output == by_flags.output
    assert "among 2 clients" in cli("partition", "--config", study, "--clients", "2").output


def test_a_partition_of_a_file_with_a_preset_is_that_of_its_run(cli, study):
    study.write_text('preset = "niid_published"\n' + STUDY)
    result = cli("partition", "--config", study)
    assert result.exit_code == 0, result.output
    assert "niid_legacy" in result.output
    assert "2,020" in result.output


def test_data_named_by_a_file_are_inspected_and_an_argument_wins(cli, study, tmp_path):
    by_file = cli("data", "inspect", "--config", study)
    assert by_file.exit_code == 0, by_file.output
    assert by_file.output == cli("data", "inspect", "rows.csv", "--label", "kind").output
    text = (tmp_path / "rows.csv").read_text()
    (tmp_path / "fewer.csv").write_text("".join(text.splitlines(keepends=True)[:31]))
    other = cli("data", "inspect", "fewer.csv", "--config", study)
    assert other.exit_code == 0, other.output
    assert "fewer.csv" in other.output


@pytest.mark.parametrize("command", [("partition",), ("data", "inspect")])
def test_a_misspelt_key_of_a_file_is_refused_where_the_setting_is_not_used_too(cli, study, command):
    study.write_text("ruonds = 2\n" + STUDY)
    result = cli(*command, "--config", study)
    assert result.exit_code == 2
    assert "did you mean 'rounds'" in result.output


def test_nothing_to_inspect_is_refused(cli):
    result = cli("data", "inspect")
    assert result.exit_code == 2
    assert "FILE" in result.output


def test_advice_names_the_flag(cli, tmp_path):
    (tmp_path / "marks.csv").write_text("x;kind\n1;a\n2;b\n")
    assert '--separator ";"' in cli("data", "inspect", "marks.csv", "--label", "kind").output
    assert cli("run", *SMALL, "--out", "here").exit_code == 0
    assert "(--overwrite)" in cli("run", *SMALL, "--out", "here").output


def test_a_message_without_advice_stays_as_it_is():
    for text in ("missing='x': expected one of drop", "or alpha=0.5", "set rng='default'"):
        assert with_flags(text) == text
    assert with_flags("set separator=tab") == "set separator=tab (--separator tab)"


def test_a_diverged_run_has_no_result_in_its_summary():
    lines = summary({"final": None, "bytes_up": 1280, "bytes_down": 128, "diverged": True})
    assert "accuracy" not in lines
    assert lines["bytes"] == "1,280 up, 128 down"
    kept = summary({"final": {"accuracy": 0.0, "round": 3}})
    assert kept["accuracy"] == "0.00% after round 3 (the result)"


def test_a_partition_by_group_calls_its_clients_by_their_names(cli, tmp_path):
    rows = "\n".join(f"{i},{('north', 'x[red]')[i % 2]},{i // 2 % 2}" for i in range(40))
    (tmp_path / "sites.csv").write_text("x,site,label\n" + rows + "\n")
    result = cli("partition", "--data=sites.csv", "--client=site", "--partition=by_group")
    assert result.exit_code == 0, result.output
    assert "north" in result.output
    assert "x[red]" in result.output
