"""Where a heat map can't go is said before any work."""

import pytest

from fedloom.cli.partition import _make
from fedloom.config import RunConfig
from fedloom.errors import ConfigError


@pytest.mark.parametrize("name", ["picture.xyz", "no/such/folder/picture.png", "picture"])
def test_a_picture_needs_a_known_ending_and_a_folder_that_exists(tmp_path, name):
    with pytest.raises(ConfigError, match=r"--heatmap .*: expected a file in a folder that exists"):
        _make(RunConfig(data="no-such-data"), None, tmp_path / name)
