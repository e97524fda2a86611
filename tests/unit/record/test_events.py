import resource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedloom.errors import RunDirectoryError
from fedloom.record import events, jsonio


def written(path: Path, *rows: tuple[str, dict[str, Any]]) -> Path:
    writer = events.EventWriter(path)
    for kind, fields in rows:
        writer.append(kind, fields)
    writer.close()
    return path


def test_lines_come_back_in_order_with_nulls_for_what_is_not_finite(tmp_path: Path) -> None:
    path = written(
        tmp_path / "e", ("round", {"round": 1, "loss": float("nan")}), ("eval", {"round": 1})
    )
    assert events.read(path) == (
        [{"event": "round", "round": 1, "loss": None}, {"event": "eval", "round": 1}],
        0,
    )


def test_no_file_is_no_events(tmp_path: Path) -> None:
    assert events.read(tmp_path / "none") == ([], 0)


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(1, 60))
def test_a_cut_last_line_is_dropped_and_counted(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "e"
    written(path, *(("round", {"round": r, "name": "Äü"}) for r in (1, 2, 3)))
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    left = data[:-cut]
    log = events.read(path)
    assert len(log.events) == left.count(b"\n")
    assert log.dropped == int(not left.endswith(b"\n"))
    writer = events.EventWriter(path)
    assert writer.dropped == log.dropped
    writer.append("note", {})
    writer.close()
    assert events.read(path) == ([*log.events, {"event": "note"}], 0)


@pytest.mark.parametrize("line", ["{", "[1]", "{}", '{"event": 3}', '{"event": "a", "round": "x"}'])
def test_damage_elsewhere_names_file_and_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "start"}\n' + line + '\n{"event": "end"}\n')
    with pytest.raises(RunDirectoryError, match=r"events\.jsonl, line 2"):
        events.read(path)


def test_a_full_disk_takes_back_the_piece_of_the_line(tmp_path: Path) -> None:
    path = written(tmp_path / "e", ("round", {"round": 1}))
    writer = events.EventWriter(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 10, hard))
    try:
        with pytest.raises(RunDirectoryError, match="bytes"):
            writer.append("round", {"round": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert events.read(path) == ([{"event": "round", "round": 1}], 0)
    writer.append("round", {"round": 2})
    writer.close()
    assert len(events.read(path).events) == 2


def test_a_closed_file_takes_no_events(tmp_path: Path) -> None:
    writer = events.EventWriter(tmp_path / "e")
    writer.close()
    with pytest.raises(RunDirectoryError, match="closed"):
        writer.append("round", {})


def test_keeping_rounds_drops_later_ones_ends_and_what_belongs_to_them(tmp_path: Path) -> None:
    path = written(
        tmp_path / "e",
        ("start", {"resumed_from": None}),
        ("eval", {"round": 0}),
        ("round", {"round": 1}),
        ("warning", {"text": "in round 1"}),
        ("end", {"round": 1}),
        ("start", {"resumed_from": 1}),
        ("round", {"round": 2}),
        ("warning", {"text": "in round 2"}),
        ("round", {"round": 3}),
        ("start", {"resumed_from": 2}),
        ("warning", {"text": "at the start of round 3"}),
    )
    writer = events.EventWriter(path)
    assert writer.keep_rounds(1) == (5, [1])
    writer.append("round", {"round": 2})
    writer.close()
    kept = [jsonio.dumps(e) for e in events.read(path).events]
    assert [line for line in kept if "start" not in line.split(",")[0]] == [
        '{"event": "eval", "round": 0}',
        '{"event": "round", "round": 1}',
        '{"event": "warning", "text": "in round 1"}',
        '{"event": "round", "round": 2}',
    ]
    assert sum('"resumed_from"' in line for line in kept) == 3
