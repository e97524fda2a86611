import csv
import io
import re

import pandas as pd
import pytest
from rich.console import Console

from fedloom.reporting import formats, table, words
from fedloom.reporting.gather import gather
from fedloom.reporting.summary import compare
from tests.unit.reporting.synthetic import write_run


def grid(built):
    titles = [column.title for column in built.columns]
    return [dict(zip(titles, [c.text for c in line.cells], strict=True)) for line in built.lines]


def made(*paths, **options):
    (one,) = compare(gather(paths).runs, **options)
    return one


def printed(built, **options):
    out = io.StringIO()
    Console(file=out, width=300).print(formats.terminal(built, **options))
    return out.getvalue()


def test_one_trial_shows_a_dash_for_its_spread_and_its_number(tmp_path):
    (row,) = grid(table.build(made(write_run(tmp_path / "a", accuracy=[0.8]))))
    assert row["Final accuracy (%)"] == "80.00 ± –"
    assert row["n"] == "1"


def test_two_trials_show_the_sample_deviation_in_every_format(tmp_path):
    one = made(
        write_run(tmp_path / "a", accuracy=[0.8]),
        write_run(tmp_path / "b", accuracy=[0.9], seed=1),
    )
    built = table.build(one)
    assert "85.00 ± 7.07" in printed(built)
    assert "85.00 ± 7.07" in formats.markdown(built)
    assert r"85.00 $\pm$ 7.07" in formats.latex(built)
    (record,) = csv.DictReader(io.StringIO(formats.csv_text([one])))
    assert float(record["final_accuracy_percent_std"]) == pytest.approx(7.0710678)
    assert any("sample standard deviation (n − 1)" in note for note in built.notes)


def test_a_diverged_trial_is_counted_named_and_not_averaged(tmp_path):
    one = made(
        write_run(tmp_path / "a", accuracy=[0.8]),
        write_run(tmp_path / "b", accuracy=[0.9], seed=1),
        write_run(
            tmp_path / "c",
            accuracy=[0.5, None],
            seed=2,
            status="diverged",
            result={"diverged_round": 2},
        ),
    )
    (row,) = grid(table.build(one))
    assert row["n"] == "2 of 3"
    assert row["Final accuracy (%)"] == "85.00 ± 7.07"
    assert row["Notes"] == "1 diverged (round 2)"


def test_the_headline_is_the_final_round_and_the_best_is_marked_optimistic(tmp_path):
    one = made(
        write_run(
            tmp_path / "a", accuracy=[0.5, 0.9, 0.7], result={"best": {"round": 2, "accuracy": 0.9}}
        )
    )
    (row,) = grid(table.build(one))
    assert row["Final accuracy (%)"] == "70.00 ± –"
    assert "90.00" not in " ".join(row.values())
    (full,) = grid(table.detailed(one))
    assert full["Best round, optimistic (%)"] == "90.00 ± –"


def test_a_target_that_no_trial_meets_is_not_reached(tmp_path):
    one = made(write_run(tmp_path / "a", accuracy=[0.5]), target=0.9)
    (row,) = grid(table.build(one))
    assert row["Rounds to 90.0 %"] == "not reached"


def test_a_target_that_some_trials_meet_says_how_many(tmp_path):
    one = made(
        write_run(tmp_path / "a", accuracy=[0.5, 0.9]),
        write_run(tmp_path / "b", accuracy=[0.5, 0.6], seed=1),
        target=0.9,
    )
    (row,) = grid(table.build(one))
    assert row["Rounds to 90.0 %"] == "2.0 (1 of 2)"


def test_differences_stand_beside_the_baseline_and_references_have_none(comparison):
    rows = {row["Method"]: row for row in grid(table.build(comparison))}
    title = "Difference to fedavg (points)"
    assert rows["fedavg"][title] == "baseline"
    assert rows["scaffold"][title] == "+1.80*"
    assert rows["scaffold"]["95 % interval"] == "+1.37 to +2.23"
    assert not rows["fedprox(mu=0.01)"][title].endswith("*")
    assert rows["centralised"][title] == "–"
    assert rows["centralised"]["Notes"] == "reference"
    assert "std over clients" in rows["local"]["Notes"]


def test_every_format_holds_the_same_numbers(comparison):
    built = table.build(comparison)
    cells = [cell.text for line in built.lines for cell in line.cells if cell.text]
    terminal, plain = printed(built), formats.latex(built).replace("$-$", "−")
    plain = plain.replace(r"$\pm$", "±").replace("--", "–").replace(r"$^{*}$", "*")
    for text in cells:
        assert text in terminal
        assert text.replace("_", r"\_") in plain
    lines = formats.markdown(built).splitlines()
    assert sum(line.startswith("|") for line in lines) == 2 + len(built.lines)


def test_the_csv_holds_the_table_unrounded(comparison):
    records = list(csv.DictReader(io.StringIO(formats.csv_text([comparison]))))
    frame = pd.read_csv(io.StringIO(formats.csv_text([comparison])))
    rows = grid(table.build(comparison))
    assert len(frame) == len(records) == len(rows)
    for record, row in zip(records, rows, strict=True):
        value, std = (
            words.fixed(float(record[f"final_accuracy_percent_{part}"])) for part in ("mean", "std")
        )
        assert row["Final accuracy (%)"] == f"{value} ± {std}"
    assert frame["bytes_mean"][0] == 20_000_000
    assert frame["difference_points"].isna().tolist() == [True, False, False, True, True]


def test_the_latex_has_balanced_braces_and_only_booktabs_rules(comparison):
    text = formats.latex(table.build(comparison))
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1
    assert r"\hline" not in text


NASTY = ["a_b & 50 % #1", "$5 {x} ~^", r"back\slash", "<b>bold</b> | pipe", "[red]not red[/red]"]


@pytest.mark.parametrize("name", NASTY)
def test_a_name_is_text_in_every_format(tmp_path, name):
    one = made(write_run(tmp_path / "a", result={"label": name}))
    built = table.build(one)
    assert name in printed(built)
    row = next(line for line in formats.markdown(built).splitlines()[4:] if line)
    assert "<b>" not in row
    assert len(re.findall(r"(?<!\\)\|", row)) == len(built.columns) + 1
    assert not re.search(r"(?<!\\)[&%#]", formats.escape(name))


def test_a_plain_terminal_gets_ascii(comparison):
    assert printed(table.build(comparison), plain=True).isascii()


def test_a_class_without_rows_has_no_number(tmp_path):
    built = table.detailed(made(write_run(tmp_path / "a", accuracy=[0.5], rounds=1)))
    assert "nan" not in printed(built)


def test_columns_in_which_nothing_was_measured_are_left_out(tmp_path):
    path = write_run(tmp_path / "a", result={"final": {"accuracy": 0.5, "round": 1}})
    titles = [column.title for column in table.build(made(path)).columns]
    assert "Final accuracy (%)" in titles
    assert "Balanced (%)" not in titles


def test_costs_share_one_unit_for_a_column(comparison):
    rows = grid(table.costs(comparison))
    assert [row["Up (MB)"] for row in rows] == ["10.00", "10.00", "20.00", "–", "–"]


def test_refused_reports_are_counted_beside_the_row(tmp_path):
    refused = {1: [{"client": 3, "reason": "not finite"}], 2: [{"client": 3, "reason": "again"}]}
    (row,) = grid(table.build(made(write_run(tmp_path / "a", refused=refused))))
    assert row["Notes"] == "2 reports refused"
