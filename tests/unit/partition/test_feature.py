import numpy as np
import pytest

from fedloom.errors import PartitionError
from fedloom.partition import noise_std


@pytest.mark.parametrize(
    ("rule", "first", "last"),
    [
        ("niid_code", 0.0, 0.1),
        ("paper", 0.1, np.sqrt(0.1)),
        ("summary", np.sqrt(0.001), 0.1),
    ],
)
def test_the_three_rules_give_their_published_ends(rule, first, last):
    std = noise_std(rule, 0.1, 10)
    assert std.shape == (10,)
    assert std[0] == pytest.approx(first)
    assert std[-1] == pytest.approx(last)
    assert (np.diff(std) > 0).all()


def test_noise_of_these_levels_is_measured_again():
    std = noise_std("niid_code", 0.1, 5)
    drawn = np.random.RandomState(0).standard_normal((5, 40_000)) * std[:, None]
    assert np.allclose(drawn.std(1), std, rtol=0.02)


def test_a_single_client_gets_no_noise_and_a_warning():
    with pytest.warns(UserWarning, match="single client gets none"):
        assert noise_std("niid_code", 0.1, 1).tolist() == [0.0]
    assert noise_std("paper", 0.1, 1).tolist() == [pytest.approx(np.sqrt(0.1))]


@pytest.mark.filterwarnings("error")
def test_no_noise_is_asked_for_without_a_warning():
    assert noise_std("niid_code", 0, 1).tolist() == [0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("niid", 0.1, 4), "did you mean 'niid_code'"),
        (("paper", -0.1, 4), "at least 0, not -0.1"),
        (("paper", float("nan"), 4), "nan"),
        (("paper", float("inf"), 4), "inf"),
        (("paper", True, 4), "True"),
        (("paper", 0.1, 0), "clients"),
        (("paper", 0.1, 2.5), "clients"),
    ],
)
def test_levels_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(PartitionError, match=message):
        noise_std(*arguments)
