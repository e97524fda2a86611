from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedloom.errors import RunDirectoryError
from fedloom.record import changes

STORED: dict[str, Any] = {
    "clients": 10,
    "model": "cnn",
    "data": "mnist",
    "partition": "iid",
    "method": {"name": "fedprox", "mu": 0.1},
    "seed": 0,
    "rounds": 10,
    "lanes": 16,
    "threads": 1,
}

configs = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2) | st.none(), max_size=4)


@given(configs, configs)
def test_no_difference_is_the_same_as_equal(stored: dict[str, Any], given_: dict[str, Any]) -> None:
    found = changes.differences(stored, given_)
    assert (found == {}) == (stored == given_)
    assert {name: (new, old) for name, (old, new) in found.items()} == changes.differences(
        given_, stored
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"clients": 20},
        {"model": "mlp"},
        {"data": "cifar10"},
        {"partition": "label_count(k=2)"},
        {"method": {"name": "fedprox", "mu": 0.2}},
        {"seed": 1},
        {"rounds": 9},
        {"seed": False},
        {"extra": 1},
    ],
)
def test_another_experiment_is_refused_with_the_difference(changed: dict[str, Any]) -> None:
    with pytest.raises(RunDirectoryError, match=next(iter(changed))):
        changes.check(STORED, STORED | changed, changes.MAY_CHANGE, "runs/a")


def test_every_difference_is_listed_with_both_values() -> None:
    given_ = STORED | {"seed": 1, "rounds": 5, "lanes": 4}
    with pytest.raises(RunDirectoryError) as caught:
        changes.check(STORED, given_, changes.MAY_CHANGE, "runs/a")
    message = str(caught.value)
    assert "seed: 0 there, 1 now" in message
    assert "rounds: 10 there, 5 now (may only be raised)" in message
    assert "lanes" not in message


def test_more_rounds_other_lanes_and_threads_are_allowed_and_given() -> None:
    given_ = STORED | {"rounds": 20, "lanes": 4, "threads": 2}
    assert changes.check(STORED, given_, changes.MAY_CHANGE, "runs/a") == {
        "rounds": (10, 20),
        "lanes": (16, 4),
        "threads": (1, 2),
    }


def test_rounds_stay_fixed_where_they_may_not_change() -> None:
    with pytest.raises(RunDirectoryError, match="rounds"):
        changes.check(STORED, STORED | {"rounds": 20}, {"threads"}, "runs/a")
