import csv

import pandas as pd
import pytest

from fedloom.errors import RunDirectoryError
from fedloom.reporting import plot, write
from tests.unit.reporting.synthetic import CLASSES, write_compare, write_run


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    card = {"count_matrix": [[3, 1, 0, 0, 0], [0, 0, 2, 2, 9]], "classes": list(CLASSES)}
    finals = {"fedavg": [0.8, 0.81], "moon": [0.7, 0.73]}
    return write_compare(tmp_path_factory.mktemp("runs") / "c", finals, card=card)


@pytest.fixture(scope="module")
def made(drawn, tmp_path_factory):
    return write(drawn, tmp_path_factory.mktemp("out") / "erg ebnisse" / "ü (1)")


@pytest.fixture
def quick(monkeypatch):
    """Leaves the figures out, which take most of the time."""
    monkeypatch.setattr(plot, "save", lambda *_: ())


def test_a_report_is_a_page_three_tables_and_figures(made):
    assert made.html.read_text("utf-8").startswith("<!doctype html>")
    stems = {path.stem for path in made.figures}
    assert stems == {"accuracy_by_round", "accuracy_by_bytes", "differences", "partition"}
    assert len(made.figures) == 12
    assert all(path.stat().st_size for path in (*made.figures, made.markdown, made.latex))
    assert made.notes == ()
    assert made.sentences[0].startswith("fedavg has the highest mean final accuracy")


def test_files_are_utf8_in_a_folder_with_blanks_and_umlauts(made):
    for path in (made.html, made.markdown, made.latex, made.csv):
        path.read_bytes().decode("utf-8")


def test_two_csv_readers_agree(made):
    with made.csv.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    frame = pd.read_csv(made.csv)
    assert list(frame.columns) == list(rows[0])
    for name in ("final_accuracy_percent_mean", "seconds_mean"):
        assert [float(row[name]) for row in rows] == frame[name].tolist()
    assert [not row["bytes_mean"] for row in rows] == frame["bytes_mean"].isna().tolist()
    assert "nan" not in made.csv.read_text("utf-8").lower()


def test_a_figure_that_fails_is_a_note_and_costs_no_table(drawn, tmp_path, monkeypatch):
    def broken(*_):
        raise OSError("no space for figures")

    monkeypatch.setattr(plot, "save", broken)
    made = write(drawn, tmp_path / "out")
    assert made.figures == ()
    assert made.html.exists()
    assert made.csv.exists()
    assert any("no space for figures" in note for note in made.notes)


@pytest.mark.usefixtures("quick")
def test_a_report_into_the_comparison_itself_can_be_written_again(drawn):
    first, second = (write(drawn, drawn).html.read_bytes() for _ in range(2))
    assert first == second


@pytest.mark.usefixtures("quick")
def test_letters_that_no_font_has_are_noted(tmp_path):
    letter = "\U00013000"
    path = write_run(tmp_path / "a", result={"label": f"x{letter}"})
    assert any(letter in note for note in write(path, tmp_path / "out").notes)


@pytest.mark.usefixtures("quick")
def test_baseline_and_target_are_handed_on(drawn, tmp_path):
    frame = pd.read_csv(write(drawn, tmp_path / "out", baseline="moon", target=0.5).csv)
    assert set(frame["baseline"]) == {"moon"}
    assert set(frame["target_percent"]) == {50.0}


def test_no_runs_is_an_error_before_anything_is_written(tmp_path):
    with pytest.raises(RunDirectoryError):
        write(tmp_path / "nothing", tmp_path / "out")
    assert not (tmp_path / "out").exists()
