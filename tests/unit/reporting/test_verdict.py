import shutil

import numpy as np
from scipy.special import stdtrit

from fedloom.reporting.gather import gather
from fedloom.reporting.summary import compare
from fedloom.reporting.verdict import verdict
from tests.unit.reporting.synthetic import write_compare, write_run


def said(path, **options):
    (one,) = compare(gather(path).runs, **options)
    return verdict(one)


def fed(tmp_path, finals, **options):
    return said(write_compare(tmp_path / "c", finals, local=False, **options))


def test_a_clear_winner_is_named_with_its_lead_and_its_cost(comparison):
    sentences = verdict(comparison)
    assert sentences[0] == (
        "scaffold has the highest mean final accuracy: 84.72 % ± 0.46 (3 trials)."
    )
    assert sentences[1] == (
        "It is 1.80 points above fedavg (95 % interval +1.37 to +2.23, 3 pairs): "
        "more than the noise of these trials."
    )
    assert (
        "It takes 2.00 times the bytes and 1.17 times the training seconds of fedavg." in sentences
    )
    assert any("7.20 points below the reference centralised" in one for one in sentences)


def test_a_lead_within_the_noise_is_called_that(tmp_path):
    sentences = fed(tmp_path, {"fedavg": [0.8, 0.84], "fedprox": [0.85, 0.81]})
    assert sentences[0].startswith("fedprox has the highest mean")
    assert sentences[1].endswith("inside the noise of these trials.")


def test_one_trial_is_no_evidence(tmp_path):
    sentences = fed(tmp_path, {"fedavg": [0.8], "fedprox": [0.85]})
    assert sentences[0].endswith("in one trial: no spread; not evidence of a difference.")
    assert "in the one trial they share" in sentences[1]
    assert not any("noise" in one for one in sentences)


def test_equal_methods_tie(tmp_path):
    sentences = fed(tmp_path, {"fedavg": [1.0, 1.0], "fedprox": [1.0, 1.0]}, accuracy=[0.5, 1.0])
    assert sentences[0] == "fedavg and fedprox tie at the highest mean final accuracy, 100.00 %."


def test_a_single_method_is_compared_with_nothing(tmp_path):
    sentences = said(write_run(tmp_path / "a", accuracy=[0.8]))
    assert sentences[0] == (
        "fedavg ends at 80.00 % in one trial: no spread; "
        "there is no other method to compare it with."
    )


def test_nothing_usable_has_no_winner(tmp_path):
    path = write_run(tmp_path / "a", accuracy=[0.3, None], status="diverged")
    assert said(path) == (
        "No method has a run that can be averaged.",
        "fedavg is not ranked: diverged.",
    )


def test_a_method_that_lost_trials_does_not_win_over_one_that_kept_all(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / f"a{seed}", seed=seed, accuracy=[0.8])
        status = "diverged" if seed else "finished"
        write_run(tmp_path / f"b{seed}", "moon", seed=seed, accuracy=[0.9], status=status)
    sentences = said(str(tmp_path / "*"))
    assert sentences[0].startswith("fedavg has the highest")
    assert sentences[-1] == "Of 2 trials of moon, 1 diverged: not averaged."


def test_a_winner_at_the_level_of_the_most_frequent_class_is_called_no_better(tmp_path):
    write_run(tmp_path / "a", accuracy=[0.764], result={"constant_baseline": 0.764})
    sentences = said(tmp_path / "a")
    assert "No method is better than always giving the most frequent class (76.40 %)." in sentences


def test_the_lead_over_a_reference_comes_with_its_paired_interval(comparison):
    gaps = np.array([0.861 - 0.93, 0.864 - 0.932, 0.855 - 0.934])
    width = stdtrit(2, 0.975) * gaps.std(ddof=1) / np.sqrt(3)
    low, high = (
        f"{100 * end:.2f}".replace("-", "\u2212")
        for end in (gaps.mean() - width, gaps.mean() + width)
    )
    (sentence,) = (one for one in verdict(comparison) if "reference centralised" in one)
    assert sentence == (
        "The best method ends 7.20 points below the reference centralised "
        f"(91.92 %; 95 % interval {low} to {high}, 3 pairs)."
    )


def test_in_a_tie_the_one_that_costs_more_is_named(tmp_path):
    finals = {"fedavg": [1.0, 1.0], "scaffold": [1.0, 1.0], "fedprox": [0.9, 0.9]}
    sentences = fed(tmp_path, finals, accuracy=[0.5, 1.0])
    assert (
        "scaffold takes 2.00 times the bytes and 1.17 times the training seconds of fedavg."
        in sentences
    )
    assert not any(one.startswith("It ") for one in sentences)


def test_a_reference_that_shares_one_of_several_trials_says_so(tmp_path):
    path = write_compare(tmp_path / "c", {"fedavg": [0.8, 0.9]})
    shutil.rmtree(path / "centralised" / "trial-1")
    (sentence,) = (one for one in said(path) if "reference centralised" in one)
    assert sentence == (
        "The best method ends 13.00 points below the reference centralised "
        "(91.72 %; in the one trial they share)."
    )
