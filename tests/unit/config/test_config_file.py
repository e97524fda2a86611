import pickle

import pytest

from fedloom import config_file
from fedloom.config import RunConfig
from fedloom.errors import ConfigError


class Marker:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_toml_and_json_give_the_same_settings(tmp_path):
    toml, json = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text('data = "mnist"\nlr = 1e-3\n[method]\nname = "fedprox"\nmu = 0.1\n')
    json.write_text('{"data": "mnist", "lr": "1e-3", "method": "fedprox(mu=0.1)"}')
    assert RunConfig.from_file(toml) == RunConfig.from_file(json)
    assert RunConfig.from_file(toml).lr == 0.001


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfrounds = 3\r\nseed = 1\r\n")
    assert RunConfig.from_file(path).rounds == 3


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "a.toml", "a.json", "a.json5"])
def test_a_tag_that_would_build_an_object_is_refused_and_not_run(tmp_path, name):
    marker = tmp_path / "marker"
    path = tmp_path / name
    path.write_text(f"x: !!python/object/apply:pathlib.Path.touch ['{marker}']\n")
    with pytest.raises(ConfigError, match=name):
        config_file.read(path)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["a.pkl", "a.pickle", "a.pt", "a.toml", "a.json"])
def test_a_pickle_is_refused_and_not_loaded(tmp_path, name):
    marker = tmp_path / "marker"
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Marker(marker)))
    with pytest.raises(ConfigError, match=name):
        config_file.read(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"lr": NaN}', "NaN"),
        ('{"lr": 1, "lr": 2}', "lr"),
        ("[1]", "one JSON object"),
        ("{", "not valid JSON"),
    ],
)
def test_json_is_read_strictly(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        config_file.read(path)


def test_a_mistake_in_toml_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text("rounds = 3\nlr = = 2\n")
    with pytest.raises(ConfigError, match="line 2"):
        config_file.read(path)


def test_a_missing_file_and_an_unknown_format_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml"):
        config_file.read(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="TOML"):
        config_file.read(tmp_path / "a.ini")
