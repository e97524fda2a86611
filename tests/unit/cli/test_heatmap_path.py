"""Where a heat map can't go is said before any work."""

import pytest

from fedloom.cli.partition import _make
from fedloom.config import RunConfig
from fedloom.errors import ConfigError


@pytest.mark.parametrize("name", ["picture.xyz", "picture", "file/picture.png"])
def test_a_picture_needs_a_known_ending_and_a_folder(tmp_path, name):
    (tmp_path / "file").write_text("a file is no folder")
    with pytest.raises(ConfigError, match="--heatmap"):
        _make(RunConfig(data="no-such-data"), None, tmp_path / name)
