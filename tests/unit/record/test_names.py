from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedloom.errors import RunDirectoryError
from fedloom.record import names


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "../../x",
        "a/../../x",
        "/tmp/x",
        "..",
        "",
        ".",
        "a\\..\\x",
        "C:\\x",
        "C:x",
        "a\nb",
        "\0",
    ],
)
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunDirectoryError, match="refused"):
        names.inside(tmp_path, name)


def test_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(tmp_path)
    with pytest.raises(RunDirectoryError, match="link"):
        names.inside(tmp_path / "runs", "link/x")


def test_blanks_and_umlauts_stay(tmp_path: Path) -> None:
    assert names.inside(tmp_path, "erg ebnisse/ü (1)") == tmp_path / "erg ebnisse" / "ü (1)"


@given(st.text(st.characters(codec=None)))
def test_any_text_becomes_one_file_name_inside(text: str) -> None:
    name = names.file_name(text)
    assert names.inside(Path("runs"), name) == Path("runs") / name
    assert Path(name).name == name
    assert 0 < len(name.encode("utf-8", "surrogatepass")) <= 255


@given(st.lists(st.text(alphabet="ab/. -0123456789cdef", max_size=12), unique=True, max_size=20))
def test_different_texts_get_different_names(texts: list[str]) -> None:
    made = [names.file_name(text) for text in texts]
    made += [names.file_name(name) for name in set(made) - set(texts)]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("device", ["CON", "nul", "com1", "LPT9.txt"])
def test_device_names_are_changed(device: str) -> None:
    assert names.file_name(device) != device
