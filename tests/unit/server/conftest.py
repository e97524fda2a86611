from pathlib import Path

import pytest

from tests.unit.server import small


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small table on disk."""
    return small.table(tmp_path_factory.mktemp("data") / "small.npz")


@pytest.fixture
def make(data: str):
    """(changes) -> the configuration of a small run."""

    def build(**changes):
        return small.config(**{"data": data, **changes})

    return build


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"
