"""What clients remember, in a file of slots: purity, resuming, damage, and how little stays."""

import mmap
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fedloom.errors import FedloomError, RunDirectoryError
from fedloom.server import checkpoint
from fedloom.server.memory import Memories

LIKE = {
    "control": {"w": torch.zeros(3, 2), "b": torch.zeros((), dtype=torch.float64)},
    "seen": torch.zeros(2, dtype=torch.bool),
    "none": {},
    "empty": torch.zeros(0, 4),
}


def memory(number: float) -> dict:
    return {
        "seen": torch.tensor([number > 3, True]),
        "control": {
            "b": torch.tensor(number / 7, dtype=torch.float64),
            "w": torch.arange(6.0).reshape(2, 3).T * number,  # not contiguous
        },
        "empty": torch.zeros(0, 4),
        "none": {},
    }


def same(found: dict, expected: dict) -> bool:
    checkpoint.check_like(found, expected)
    left, right = checkpoint.flatten(found)[0], checkpoint.flatten(expected)[0]
    return all(torch.equal(leaf, right[name]) for name, leaf in left.items())


def holds(store: Memories, expected: dict[int, float]) -> bool:
    return list(store) == sorted(expected) and all(
        same(store[client], memory(number)) for client, number in expected.items()
    )


@pytest.mark.parametrize("budget", [0, 2**30])
def test_a_memory_comes_back_to_the_bit_and_nobody_else_has_one(tmp_path, budget):
    store = Memories.begin(LIKE, tmp_path / "m.bin", budget)
    assert (len(store), 5 in store, store.get(5, "fresh")) == (0, False, "fresh")
    store = store.updated({5: memory(1.0), 999_999: memory(2.0)}).updated({5: memory(4.0)})
    assert holds(store, {5: 4.0, 999_999: 2.0})
    assert (len(store), 999_999 in store, 6 in store) == (2, True, False)
    assert dict(store.items()).keys() == {5, 999_999}
    with pytest.raises(KeyError):
        store[6]


def test_what_is_read_is_a_copy():
    store = Memories.begin(LIKE).updated({0: memory(1.0)})
    store[0]["control"]["w"].zero_()
    assert same(store[0], memory(1.0))


def test_an_update_leaves_the_round_before_as_it_was():
    first = Memories.begin(LIKE).updated({0: memory(1.0), 1: memory(2.0)})
    second = first.updated({1: memory(3.0), 2: memory(4.0)})
    assert holds(first, {0: 1.0, 1: 2.0})
    assert holds(second, {0: 1.0, 1: 3.0, 2: 4.0})
    third = second.updated({0: memory(5.0)})
    assert holds(second, {0: 1.0, 1: 3.0, 2: 4.0})
    assert holds(third, {0: 5.0, 1: 3.0, 2: 4.0})
    with pytest.raises(ValueError, match="earlier round"):
        first[0]


def test_a_round_that_is_run_twice_has_two_futures(tmp_path):
    store = Memories.begin(LIKE, tmp_path / "m.bin").updated({0: memory(1.0), 1: memory(2.0)})
    one, two = store.updated({0: memory(3.0)}), store.updated({1: memory(4.0)})
    assert holds(one, {0: 3.0, 1: 2.0})
    assert holds(two, {0: 1.0, 1: 4.0})
    assert holds(two.updated({2: memory(5.0)}), {0: 1.0, 1: 4.0, 2: 5.0})
    assert holds(one, {0: 3.0, 1: 2.0})


def test_methods_without_memories_need_no_file(tmp_path):
    store = Memories.begin({}, tmp_path / "m.bin").updated({3: {}, 4: {}})
    assert len(store) == 0
    assert store.save() == {}
    assert not list(tmp_path.iterdir())
    assert len(Memories.restore({}, {}, tmp_path / "m.bin")) == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seen": torch.zeros(3, dtype=torch.bool)}, r"client 7.*'seen' is bool \[3\], expected"),
        ({"seen": torch.zeros(2)}, r"'seen' is float32 \[2\], expected bool \[2\]"),
        ({"more": torch.zeros(1)}, r"'more' is float32 \[1\], expected nothing"),
        ({"control": {"b": torch.zeros((), dtype=torch.float64)}}, "'control/w' is missing"),
    ],
)
def test_a_memory_of_another_layout_is_refused(changed, message):
    with pytest.raises(FedloomError, match=message):
        Memories.begin(LIKE).updated({7: {**memory(1.0), **changed}})


@pytest.mark.parametrize("every", [1, 3])
def test_the_last_two_checkpoints_can_be_gone_back_to_at_any_moment(tmp_path, every):
    """Also after checkpoints were gone back to; and the file stays a few times what it holds."""
    draw, path = np.random.RandomState(every), tmp_path / "m.bin"
    store, current, saved, number = Memories.begin(LIKE, path), {}, [], 0.0
    for round in range(1, 61):
        cohort = draw.permutation(12)[:4].tolist()
        number += 1.0
        store = store.updated({client: memory(number) for client in cohort})
        current = {**current, **dict.fromkeys(cohort, number)}
        for state, then in saved[-2:]:
            assert holds(Memories.restore(state, LIKE, path), then)
        if round % every == 0:
            saved.append((store.save(), current))
        if round % 17 == 0:
            saved = saved[-2:-1] if draw.randint(2) else saved[-2:]  # the newest may be damaged
            state, current = saved[-1]
            store = Memories.restore(state, LIKE, path)
            assert holds(store, current)
    assert path.stat().st_size <= (12 + 4 * 2 * (2 + every)) * store.layout.size


def test_damage_is_told_with_client_and_file(tmp_path):
    path = tmp_path / "m.bin"
    store = Memories.begin(LIKE, path).updated({c: memory(c + 1.0) for c in range(6)})
    saved = store.save()
    whole, size = path.read_bytes(), store.layout.size
    slot = int(saved["table"][4, 1])
    path.write_bytes(whole[: slot * size + 3] + b"\xff" + whole[slot * size + 4 :])
    with pytest.raises(RunDirectoryError, match=r"m\.bin is damaged: the memory of client 4 "):
        Memories.restore(saved, LIKE, path)
    path.write_bytes(whole[: 2 * size])
    with pytest.raises(RunDirectoryError, match=r"the memory of client \d "):
        Memories.restore(saved, LIKE, path)
    path.unlink()
    with pytest.raises(RunDirectoryError, match=r"can't read .*m\.bin"):
        Memories.restore(saved, LIKE, path)


def test_a_checkpoint_of_another_version_or_method_is_refused(tmp_path):
    with pytest.raises(RunDirectoryError, match="another version or method"):
        Memories.restore({3: {"w": torch.zeros(2)}}, LIKE, tmp_path / "m.bin")


def test_a_checkpoint_holds_numbers_and_no_memories_and_goes_through_the_disk(tmp_path):
    like = {"w": torch.zeros(1000)}
    store = Memories.begin(like, tmp_path / "m.bin")
    store = store.updated(
        {client: {"w": torch.full((1000,), float(client))} for client in range(50)}
    )
    path = checkpoint.save(tmp_path, 3, {"memories": store.save()}, {})
    assert path.stat().st_size < 50 * 100
    found = checkpoint.load_latest(tmp_path)
    again = Memories.restore(found.state["memories"], like, tmp_path / "m.bin")
    assert all(torch.equal(again[c]["w"], torch.full((1000,), float(c))) for c in range(50))


def test_a_folder_with_memories_and_no_checkpoint_is_no_checkpoint(tmp_path):
    Memories.begin(LIKE, tmp_path / "m.bin").updated({0: memory(1.0)})
    assert checkpoint.load_latest(tmp_path) is None


def test_only_what_can_be_gone_back_to_is_saved(tmp_path):
    first = Memories.begin(LIKE, tmp_path / "m.bin").updated({0: memory(1.0)})
    first.updated({0: memory(2.0)})
    with pytest.raises(ValueError, match="newest"):
        first.save()
    with pytest.raises(ValueError, match="folder"):
        Memories.begin(LIKE).save()


FULL = """
import resource, signal, sys, torch
from pathlib import Path
from fedloom.errors import RunDirectoryError
from fedloom.server.memory import Memories
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
store = Memories.begin({"w": torch.zeros(1000)}, Path(sys.argv[1]))
try:
    store.updated({client: {"w": torch.ones(1000)} for client in range(5)})
except RunDirectoryError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on file size here")
def test_a_full_disk_is_an_error_and_no_crash(tmp_path):
    command = [sys.executable, "-c", FULL, str(tmp_path / "m.bin")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "can't write" in done.stdout
    assert "raise the limit" in done.stdout


@pytest.mark.skipif(not hasattr(mmap, "MADV_DONTNEED"), reason="pages can't be let go here")
def test_no_more_than_the_budget_stays_resident(tmp_path):
    def resident() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))

    like = {"w": torch.zeros(2**16)}  # 256 KiB
    held = {}
    for budget in (2**22, 2**30):
        store = Memories.begin(like, tmp_path / f"{budget}.bin", budget)
        store = store.updated(dict.fromkeys(range(128), like))
        before = resident()
        for client in range(128):
            store[client]
        held[budget] = resident() - before
    assert held[2**22] <= 2**12 + 512
    assert held[2**30] >= 2**15 * 0.9
