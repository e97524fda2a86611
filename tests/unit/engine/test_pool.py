"""Worker processes: the loop's bits, one copy of the data, and no harm from a killed worker."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from fedloom.clients.batches import LocalWork
from fedloom.clients.examples import Examples
from fedloom.engine.pool import LIVES, Pool
from fedloom.engine.wire import Shelf, dumps, loads
from fedloom.errors import ConfigError, FedloomError
from fedloom.method import Method
from fedloom.methods import make
from tests.problems import federation, gap, same_bits

BIG = LocalWork(None, 1500, 7)  # steps enough that a worker can be killed in mid-round


def echo(resident, shared, payload):
    for number in range(payload):
        yield resident, shared, number


def fail(resident, shared, payload):
    yield payload
    raise ValueError(f"no {payload}")


def perish(resident, shared, payload):
    os.kill(os.getpid(), signal.SIGKILL)
    yield payload


def inside(resident, shared, payload):
    x = resident.trainer.examples.x
    maps = Path("/proc/self/maps").read_text()
    yield payload, float(x.sum()), [line for line in maps.splitlines() if "fedloom-" in line]


@pytest.fixture
def pool():
    made = Pool("resident", 2)
    yield made
    made.close()


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("name", ["fedavg", "scaffold", "fednova", "local"])
def test_the_pool_gives_the_loops_bits(name, norm):
    here = federation(workers=2, norm=norm)
    looped, pooled = (each.play(make(name)) for each in (federation(norm=norm), here))
    here.engine.close()
    assert same_bits(looped[0], pooled[0])
    assert all(same_bits(looped[1][client], pooled[1][client]) for client in looped[1])


def test_lanes_in_a_pool_agree_with_the_loop():
    here = federation((60, 41, 40, 12, 3), executor="mapped", workers=2)
    pooled = here.play(make("scaffold"))
    here.engine.close()
    assert gap(federation((60, 41, 40, 12, 3)).play(make("scaffold")), pooled) < 1e-12


def test_a_killed_workers_clients_are_trained_again_with_the_same_bits():
    looped = federation(work=BIG).play(make("fedavg"), rounds=1)
    here = federation(work=BIG, workers=2)
    here.play(make("fedavg"), rounds=1)
    victim = here.engine.pool.pids()[0]
    threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
    pooled = here.play(make("fedavg"), rounds=1)
    assert here.engine.pool.replaced == 1
    assert victim not in here.engine.pool.pids()
    here.engine.close()
    assert same_bits(looped[0], pooled[0])


def test_results_come_in_the_order_of_a_task_and_all_of_them(pool):
    found = list(pool.run(echo, "shared", [3, 0, 2]))
    assert sorted(found) == sorted([("resident", "shared", n) for n in (0, 1, 2, 0, 1)])
    assert list(pool.run(echo, "again", [1])) == [("resident", "again", 0)]


def test_an_error_in_a_worker_names_type_and_line(pool):
    with pytest.raises(FedloomError, match=r"ValueError in a worker process: no 7 \(.*:\d+\)"):
        list(pool.run(fail, None, [7]))


def test_work_that_kills_its_workers_ends_the_run(pool):
    with pytest.raises(FedloomError, match=f"{LIVES} worker processes died over the same work"):
        list(pool.run(perish, None, [1]))


def test_workers_map_one_copy_of_the_data_and_leave_nothing_behind():
    here = federation(workers=2)
    here.play(make("fedavg"), rounds=1)
    folder = here.engine.pool._shelf.path
    seen = list(here.engine.run(inside, None, range(6)))
    total = float(here.engine.trainer.examples.x.sum())
    assert all(value == total and mapped for _, value, mapped in seen)
    assert len(list(folder.iterdir())) == 2
    pids = here.engine.pool.pids()
    here.engine.close()
    assert not folder.exists()
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in pids)


def test_a_class_that_only_this_process_knows_is_refused_before_work():
    class Hidden(Method):
        """Unknown elsewhere."""

    here = federation(workers=2)
    here.engine.trainer.task.secret = Hidden()
    with pytest.raises(ConfigError, match="define it in a module, or use workers=1"):
        here.play(make("fedavg"), rounds=1)


def test_orphans_end_with_their_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import time\nfrom fedloom.engine.pool import Pool\n"
        "if __name__ == '__main__':\n"
        "    pool = Pool(1, 2)\n    print(*pool.pids(), pool._shelf.path, flush=True)\n"
        "    time.sleep(60)\n"
    )
    import subprocess
    import sys

    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    *pids, folder = parent.stdout.readline().split()
    time.sleep(3)  # until they have started to watch
    parent.kill()
    parent.wait()
    deadline = time.time() + 30
    while any(Path(f"/proc/{pid}/exe").exists() for pid in pids) and time.time() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in pids)
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1),
        torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
        torch.arange(10)[::2],
        torch.ones(3, dtype=torch.bfloat16),
        torch.tensor(3),
        torch.empty(0, 4),
    ],
)
def test_a_tensor_travels_with_dtype_values_and_layout(value):
    there = loads(dumps(value))
    assert there.dtype == value.dtype
    assert torch.equal(there, value)
    dense = value if value.numel() == 5 else there
    assert there.stride() == value.stride() or dense is value


def test_sparse_and_dense_examples_are_shelved_once():
    shelf = Shelf()
    dense = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    y = np.arange(4)
    for examples in (Examples(dense, y), Examples(csr_matrix(dense), y)):
        there = loads(dumps([examples, examples], shelf))
        assert torch.equal(there[1].take(torch.tensor([1, 3]))[0], torch.from_numpy(dense[[1, 3]]))
    shelf.clear()
    assert not shelf.path.exists()
