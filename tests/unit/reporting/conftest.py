from pathlib import Path

import pytest

from fedloom.reporting.gather import gather
from fedloom.reporting.summary import Comparison, compare
from tests.unit.reporting.synthetic import write_compare

FINALS = {
    "fedavg": [0.842, 0.845, 0.839],
    "fedprox(mu=0.01)": [0.843, 0.849, 0.838],
    "scaffold": [0.861, 0.864, 0.855],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_compare(tmp_path / "compare", FINALS)


@pytest.fixture
def comparison(folder: Path) -> Comparison:
    (only,) = compare(gather(folder).runs)
    return only
