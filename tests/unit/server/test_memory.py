"""A run holds no more at its end than near its beginning."""

import os
from pathlib import Path

import pytest

from fedloom.server.checkpoint import load_latest
from fedloom.server.run import run

STATUS = Path("/proc/self/statm")


class Watch:
    """The process's resident memory, in bytes, by round."""

    def __init__(self):
        self.seen = {}

    def start(self, total_rounds, label):
        pass

    def advance(self, round, info):
        if round in (20, 120):
            pages = int(STATUS.read_text().split()[1])
            self.seen[round] = pages * os.sysconf("SC_PAGE_SIZE")

    def close(self):
        pass


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="memory is read from /proc")
def test_memory_and_open_files_stay_as_they_are(make, folder):
    watch = Watch()
    descriptors = len(os.listdir("/proc/self/fd"))
    asked = make(
        method="scaffold",
        clients=20,
        partition="iid",
        local_epochs=1,
        rounds=120,
        eval_every=20,
        checkpoint_every=5,
    )
    run(asked, folder, progress=watch)
    assert watch.seen[120] < 1.05 * watch.seen[20]
    assert len(os.listdir("/proc/self/fd")) <= descriptors


@pytest.mark.parametrize("method", ["scaffold", "local"])
def test_what_clients_remember_does_not_pile_up(make, tmp_path, method):
    sizes = []
    for rounds in (3, 9):
        run(make(method=method, rounds=rounds, eval_every=9), tmp_path / str(rounds))
        folder = tmp_path / str(rounds) / "checkpoints"
        sizes.append(max(path.stat().st_size for path in folder.glob("round-*")))
        assert len(load_latest(folder).state["memories"]["table"]) == 6
        assert len(list(folder.iterdir())) <= 3
    assert sizes[0] == sizes[1]
