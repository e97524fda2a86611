import numpy as np
import pytest

from fedloom.record import jsonio
from fedloom.reporting.alone import alone
from fedloom.reporting.gather import gather
from fedloom.reporting.summary import compare
from tests.unit.reporting.synthetic import write_local
from tests.unit.reporting.test_page import EVIL, Reader, rendered


def write(path, accuracies, names, *, seed=0):
    folder = write_local(path, accuracies, seed=seed)
    clients = [{"name": name, "size": 10 * (i + 1)} for i, name in enumerate(names)]
    counts = [[10 * (i + 1), 0] for i in range(len(names))]
    jsonio.write(
        folder / "card.json", {"clients": clients, "count_matrix": counts, "classes": ["a", "b"]}
    )
    return folder


def made(path):
    (one,) = compare(gather(path).runs)
    return alone(one)


def test_each_client_is_named_with_its_rows_and_its_own_accuracy(tmp_path):
    table = made(write(tmp_path / "a", [0.5, None, 0.75], ["oslo", "rome", "bonn"]))
    assert [[cell.text for cell in line.cells] for line in table.lines] == [
        ["oslo", "10", "50.00"],
        ["rome", "20", "–"],
        ["bonn", "30", "75.00"],
    ]


def test_named_clients_are_averaged_over_trials_whatever_their_order(tmp_path):
    write(tmp_path / "a", [0.5, 0.75], ["oslo", "rome"])
    folder = write(tmp_path / "b", [0.85, 0.6], ["rome", "oslo"], seed=1)
    card = {"clients": [{"name": "rome", "size": 20}, {"name": "oslo", "size": 10}]}
    jsonio.write(folder / "card.json", card)
    table = made(str(tmp_path / "*"))
    assert [[cell.value for cell in line.cells[1:]] for line in table.lines] == [
        [10, pytest.approx(55)],
        [20, pytest.approx(80)],
    ]
    assert table.lines[0].cells[2].text == f"55.00 ± {100 * np.std([0.5, 0.6], ddof=1):.2f}"


def test_clients_without_names_are_shown_for_one_trial(tmp_path):
    write(tmp_path / "a", [0.5, 0.75], [None, None])
    write(tmp_path / "b", [0.6, 0.85], [None, None], seed=1)
    table = made(str(tmp_path / "*"))
    assert [line.cells[0].text for line in table.lines] == ["0", "1"]
    assert [line.cells[2].value for line in table.lines] == [50, 75]
    assert "the first trial" in table.notes[0]


def test_many_clients_and_none_have_no_table(tmp_path, comparison):
    names = [str(i) for i in range(31)]
    assert made(write(tmp_path / "a", [0.5] * 31, names)) is None
    assert made(write(tmp_path / "b", [0.5] * 30, names[:30])) is not None
    assert alone(comparison) is not None


def test_names_stand_on_the_page_as_text(tmp_path):
    text = rendered(write(tmp_path / "a", [0.5, 0.75], ["oslo & co", EVIL]))
    reader = Reader(text)
    assert "Each client alone" in reader.text
    assert "img" not in reader.tags
    assert "oslo & co" in reader.text
    heat = text[text.index('class="heat"') :]
    assert "oslo &amp; co" in heat[: heat.index("</svg>")]
