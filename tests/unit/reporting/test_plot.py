import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedloom.reporting import look, plot, series
from fedloom.reporting.gather import gather
from fedloom.reporting.summary import compare
from tests.unit.reporting.synthetic import write_compare, write_run

NASTY = ["a_b", "$5", "100%", "猫", "x" * 60]


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def made(path, **options):
    (one,) = compare(gather(path).runs)
    return one


def texts(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    (axes,) = figure.axes
    return [text.get_text() for text in axes.texts]


def line(figure: Figure, place: int = 0) -> np.ndarray:
    return np.asarray(figure.axes[0].lines[place].get_ydata(), dtype=float)


def test_a_diverged_run_ends_in_a_gap_and_a_mark(tmp_path):
    path = write_run(tmp_path / "a", accuracy=[0.3, 0.5, None, None], status="diverged")
    figure = plot.curves(made(path))
    assert "diverged" in texts(figure)
    drawn = [np.asarray(one.get_ydata(), dtype=float) for one in figure.axes[0].lines]
    thin = next(values for values in drawn if len(values) == 4)
    assert np.isnan(thin).tolist() == [False, False, True, True]


def test_a_single_round_is_a_visible_point(tmp_path):
    figure = plot.curves(made(write_run(tmp_path / "a", accuracy=[0.4])))
    markers = [one.get_marker() for one in figure.axes[0].lines]
    assert look.MARKERS[0] in markers


def test_a_point_between_gaps_is_visible(tmp_path):
    figure = plot.curves(made(write_run(tmp_path / "a", accuracy=[None, 0.4, None, 0.5, 0.6])))
    points = [one for one in figure.axes[0].lines if one.get_marker() == look.MARKERS[0]]
    assert [list(one.get_ydata()) for one in points] == [[pytest.approx(40)]]


def test_an_empty_history_says_no_data(tmp_path):
    path = write_run(tmp_path / "a", accuracy=[])
    for against in ("rounds", "bytes", "seconds"):
        assert "no data" in texts(plot.curves(made(path), "accuracy", against))


def test_each_metric_is_drawn_at_its_own_rounds(tmp_path):
    one = made(write_run(tmp_path / "a", rounds=20, eval_every=5))
    assert len(line(plot.curves(one, "accuracy"))) == 4
    assert len(line(plot.curves(one, "train_loss"))) == 20


def test_the_line_is_the_mean_of_the_table_and_the_band_its_trials(comparison):
    for place, row in enumerate(comparison.rows):
        shown = series.lines(comparison, "accuracy")[place].band
        ends = [100 * run.final("accuracy") for run in row.usable.values()]
        assert shown.mean[-1] == pytest.approx(100 * row.final("accuracy").mean)
        assert (shown.low[-1], shown.high[-1]) == pytest.approx((min(ends), max(ends)))


def test_bytes_on_the_axis_are_those_that_were_sent(comparison):
    shown = series.lines(comparison, "accuracy", "bytes")
    assert [one.name for one in shown] == [row.full for row in comparison.rows]
    assert [one.band.x[-1] for one in shown] == [20e6, 20e6, 40e6]


def test_what_a_cut_axis_hides_is_said(tmp_path):
    start, end = [0.1, 0.5], [0.9 + 0.001 * place for place in range(18)]
    shown = series.lines(made(write_run(tmp_path / "a", accuracy=start + end)), "accuracy")
    bounds, whole = (series.limits(shown, zoom=zoom) for zoom in (True, False))
    assert whole.low < 10 < 80 < bounds.low < 91
    assert bounds.note == "Below the axis: early rounds."
    assert whole.note == ""


def test_lines_differ_without_their_colours():
    looks = [look.style(place, False) for place in range(8)]
    assert len({(dash, marker) for _, dash, marker in looks}) == 8
    assert len({colour for colour, _, _ in looks}) == 8


@pytest.mark.parametrize("name", NASTY)
def test_a_name_in_a_figure_is_text_and_is_cut_if_long(name):
    shown = look.drawable(name)
    assert len(shown) <= 28
    assert shown == name or shown.endswith("…") or "?" in shown


def test_class_names_keep_the_order_of_the_tables_and_mean_no_mathematics(tmp_path):
    counts = np.arange(15).reshape(3, 5).tolist()
    figure = plot.heatmap(counts, NASTY, "$x_1$ 100%")
    paths = plot.save(figure, tmp_path, "heat")
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == [look.drawable(name, 20) for name in NASTY]
    assert all(path.stat().st_size > 1000 for path in paths)
    assert "$x_1$ 100%" in (tmp_path / "heat.svg").read_text("utf-8")


def test_the_forest_shows_every_method_but_the_baseline(comparison):
    figure = plot.forest(comparison)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["scaffold", "fedprox(mu=0.01)"]


def test_a_figure_is_written_in_three_formats_with_the_same_bytes_each_time(comparison, tmp_path):
    first, second = (
        plot.save(plot.curves(comparison), tmp_path / name, "curves") for name in ("a", "b")
    )
    assert [path.suffix for path in first] == [".png", ".svg", ".pdf"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_many_figures_need_no_window_and_leave_nothing_open(tmp_path):
    path = write_run(tmp_path / "a", rounds=3)
    program = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "from fedloom.reporting import gather, compare, plot\n"
        f"(one,) = compare(gather({str(path)!r}).runs)\n"
        "for _ in range(30): figure = plot.curves(one)\n"
        f"plot.save(figure, __import__('pathlib').Path({str(tmp_path)!r}), 'x')\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "DISPLAY"} | {"MPLBACKEND": "TkAgg"}
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=root, check=True)


def test_a_card_without_a_count_matrix_has_no_heat_map():
    assert plot.counts_of({"count_matrix": None}) is None
    assert plot.counts_of({}) is None
    assert plot.counts_of({"count_matrix": [[1, 2]], "classes": ["a", "b"]}) == (
        [[1, 2]],
        ["a", "b"],
    )


def test_clients_with_names_stand_under_the_heat_map():
    names = ["oslo", "a hospital with a long name", "rome"]
    figure = plot.heatmap([[1, 2], [3, 4], [0, 5]], ["a", "b"], "title", names)
    ticks = [tick.get_text() for tick in figure.axes[0].get_xticklabels()]
    assert ticks == ["oslo", "a hospital with a l…", "rome"]
    plain = plot.heatmap([[1, 2], [3, 4], [0, 5]], ["a", "b"], "title")
    assert figure.get_figheight() > plain.get_figheight()


def test_a_single_point_has_its_marker_in_the_legend_and_no_line(tmp_path):
    write_compare(tmp_path / "c", {"fedavg": [0.8, 0.9]})
    (one,) = compare(gather(tmp_path / "c").runs)
    legend = plot.curves(one, "accuracy").axes[0].get_legend()
    lines = {
        text.get_text(): line
        for text, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    assert lines["local"].get_linestyle() == "None"
    assert lines["local"].get_marker() != "None"
    assert lines["fedavg"].get_linestyle() != "None"
