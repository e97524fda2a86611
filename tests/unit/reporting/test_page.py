import json
import re
from html.parser import HTMLParser

import pytest

from fedloom.reporting import page
from fedloom.reporting.gather import gather
from fedloom.reporting.summary import compare
from tests.unit.reporting.synthetic import CLASSES, write_compare, write_run

VOID = {"meta", "link", "br", "rect", "circle", "path"}
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;"


class Reader(HTMLParser):
    """Collects tags, attributes, and text outside scripts and styles; checks that tags close."""

    def __init__(self, text):
        super().__init__()
        self.stack, self.tags, self.attributes, self.words = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def rendered(path, **options):
    gathered = gather(path)
    return page.render(compare(gathered.runs, **options), gathered.notes)


def test_the_page_closes_every_tag_and_asks_nothing_of_the_network(folder):
    text = rendered(folder)
    reader = Reader(text)
    assert reader.stack == []
    links = [
        value for name, value in reader.attributes if name in ("src", "href", "action", "data")
    ]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert not re.search(r"https?://", text)


def test_the_page_says_what_the_verdict_and_the_table_say(folder):
    text = Reader(rendered(folder)).text
    assert "scaffold has the highest mean final accuracy: 84.72 % ± 0.46 (3 trials)." in text
    assert "+1.37 to +2.23" in text
    assert "label_dirichlet(alpha=0.5)" in text


def test_two_renderings_are_the_same_bytes(folder):
    assert rendered(folder) == rendered(folder)


@pytest.fixture
def evil(tmp_path):
    return write_run(
        tmp_path / "a",
        EVIL,
        accuracy=[0.5, None],
        status="diverged",
        config={"data": EVIL, "partition": EVIL, EVIL: EVIL},
        card={
            "count_matrix": [[1] * 5] * 2,
            "classes": [EVIL, *CLASSES[1:]],
            "warnings": [EVIL],
            EVIL: EVIL,
        },
        refused={1: [{"client": EVIL, "reason": EVIL}]},
    )


def test_names_from_files_are_text_and_never_markup(evil):
    text = rendered(evil)
    reader = Reader(text)
    assert "img" not in reader.tags
    assert not any(name.startswith("on") for name, _ in reader.attributes)
    scripts = [tag for tag in reader.tags if tag == "script"]
    charts = re.findall(r'<script type="application/json">', text)
    assert len(scripts) == len(charts) + 1
    assert EVIL in "".join(reader.words)


def test_the_points_of_every_chart_are_strict_json(evil, folder):
    def refuse(word):
        raise ValueError(word)

    for path in (evil, folder):
        blocks = re.findall(
            r'<script type="application/json">(.*?)</script>', rendered(path), re.DOTALL
        )
        assert blocks
        for block in blocks:
            for one in json.loads(block, parse_constant=refuse):
                assert len(one["x"]) == len(one["mean"]) == len(one["low"]) == len(one["high"])


def test_a_class_without_test_rows_has_no_number_and_is_counted(folder):
    text = Reader(rendered(folder)).text
    assert "4 of 5 classes have test rows" in text


def test_several_settings_come_with_an_answer_each(tmp_path):
    write_compare(tmp_path / "a", {"fedavg": [0.8], "moon": [0.7]})
    write_compare(tmp_path / "b", {"fedavg": [0.6], "moon": [0.9]}, config={"data": "mnist"})
    text = Reader(rendered([tmp_path / "a", tmp_path / "b"])).text
    assert "2 settings on adult and mnist" in text
    assert "fedavg has the highest final accuracy" in text
    assert "moon has the highest final accuracy" in text


def test_identifiers_on_a_page_are_unique(tmp_path):
    write_compare(tmp_path / "a", {"fedavg": [0.8]})
    write_compare(tmp_path / "b", {"fedavg": [0.6]}, config={"data": "mnist"})
    reader = Reader(rendered([tmp_path / "a", tmp_path / "b"]))
    found = [value for name, value in reader.attributes if name == "id"]
    assert len(found) == len(set(found))


def test_conditions_that_are_not_the_same_are_pointed_out(tmp_path):
    write_run(tmp_path / "a", result={"partition_digest": "1"})
    write_run(tmp_path / "b", "moon", config={"lr": 1.0}, result={"partition_digest": "2"})
    text = Reader(rendered(str(tmp_path / "*"))).text
    assert "Rows differ in more than their method: lr." in text
    assert "Seed 0: the partition is not the same for every method." in text


def test_tuning_shows_every_candidate_and_that_it_was_chosen_on_validation_data(folder):
    record = json.loads((folder / "compare.json").read_text())
    record["tuning"] = [
        {
            "method": "fedprox",
            "chosen": {"mu": 0.01},
            "candidates": [
                {"mu": 0.01, "validation_accuracy": 0.8123, "run": "tuning/fedprox/0"},
                {"mu": 1.0, "validation_accuracy": None, "run": "tuning/fedprox/1"},
            ],
        }
    ]
    (folder / "compare.json").write_text(json.dumps(record))
    text = Reader(rendered(folder)).text
    assert "fedprox: mu = 0.01" in text
    assert "mu = 0.01 81.23 %" in text
    assert "mu = 1.0 – %" in text
    assert "never on the test set" in text


def test_an_empty_history_makes_a_page_that_says_no_data(tmp_path):
    text = rendered(write_run(tmp_path / "a", accuracy=[]))
    assert "no data" in Reader(text).text


def test_a_line_of_a_single_point_has_a_dot_in_the_legend(tmp_path):
    write_compare(tmp_path / "c", {"fedavg": [0.8, 0.9]})
    text = rendered(tmp_path / "c")
    legend = text[text.index('<ul class="legend">') :]
    items = legend[: legend.index("</ul>")].split("</li>")
    assert ['class="dot"' in item for item in items if "<li>" in item] == [False, False, True]
    assert "local" in items[2]


@pytest.mark.parametrize("path", ["/home/me/study/train.csv", "study\\\\train.csv", "train.csv"])
def test_own_files_are_titled_by_their_name(tmp_path, path):
    text = Reader(
        rendered(
            write_run(tmp_path / "a", config={"data": path, "clients": 1}, result={"data": "train"})
        )
    ).text
    assert text.startswith("fedavg on train.csv · FedLoom")
    (one,) = compare(gather(tmp_path / "a").runs)
    assert one.title == "train.csv · label_dirichlet(alpha=0.5) · 1 client"


def test_long_digests_are_cut_wherever_they_stand(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / f"a{seed}", seed=seed, config={"partition_digest": f"{seed}" * 64})
    text = Reader(rendered(str(tmp_path / "*"))).text
    assert f"{'0' * 12}… | {'1' * 12}…" in text
    assert "0" * 13 not in text
