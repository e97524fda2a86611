import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import make


def cube(n=4000, seed=0):
    return np.random.RandomState(seed).uniform(-1, 1, (n, 3))


def octants(per_octant=500, seed=0):
    """Equally many points in each octant, and their labels."""
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 8).T
    x = np.abs(cube(8 * per_octant, seed)) * np.repeat(signs, per_octant, axis=0)
    return x, (x[:, 0] >= 0).astype(int)


@pytest.mark.parametrize("clients", [1, 2, 4, 8, 12, 20])
def test_octants_of_a_client_are_antipodal_and_its_classes_balanced(clients):
    x, y = octants(per_octant=60)
    partition = make("fcube_octants", y, clients, seed=0, x=x)
    for rows in partition.indices:
        codes = set(((x[rows] >= 0) @ [4, 2, 1]).tolist())
        assert {7 - code for code in codes} == codes
        assert len(codes) == 8 // min(clients, 4)
    assert (partition.count_matrix == 240 // clients).all()


def test_clients_zero_to_three_hold_the_documented_octants():
    x = np.array([[1, 1, 1], [-1, -1, 1], [1, -1, 1], [1, -1, -1], [0, 0, 0], [-1, 1, -1]])
    partition = make("real", [1, 0, 1, 1, 1, 0], 4, seed=0, x=x)
    assert [rows.tolist() for rows in partition.indices] == [[0, 4], [1], [2, 5], [3]]


def test_inside_a_client_every_coordinate_tells_the_label():
    x, y = octants()
    for rows in make("fcube_octants", y, 4, seed=0, x=x).indices:
        for axis in (1, 2):
            assert len(set(zip(y[rows], x[rows, axis] > 0, strict=True))) == 2


@pytest.mark.parametrize(
    ("clients", "x", "message"),
    [
        (3, cube(), "multiple of 4"),
        (6, cube(), "multiple of 4"),
        (4, cube()[:, :2], r"shape \(4000, 3\), not \(4000, 2\)"),
        (4, cube()[:10], "shape"),
        (4, np.full((4000, 3), np.nan), "missing"),
    ],
)
def test_cubes_that_are_none_are_refused(clients, x, message):
    with pytest.raises(PartitionError, match=message):
        make("fcube_octants", np.arange(4000) % 2, clients, seed=0, x=x)
