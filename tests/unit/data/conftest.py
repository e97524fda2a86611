import os
from pathlib import Path

import pytest

FOLDER = os.environ.get("FEDLOOM_DATA", "")


@pytest.fixture
def real():
    """A folder with NAME.npz files; each test names what it needs."""

    def need(name: str) -> Path:
        if not FOLDER or not (Path(FOLDER) / f"{name}.npz").exists():
            pytest.skip(f"needs {name}.npz in the folder that FEDLOOM_DATA names")
        return Path(FOLDER)

    return need


@pytest.fixture
def write(tmp_path):
    """Write a small file and give its path."""

    def put(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put
