"""Learning rates by global round."""

import math

import pytest

from fedloom.errors import ConfigError
from fedloom.server import schedule
from fedloom.server.run import run
from tests.unit.server.small import events


def rates(spec, rounds):
    return [schedule.make(spec)(round, rounds) for round in range(1, rounds + 1)]


def test_constant_is_one():
    assert rates("constant", 5) == [1.0] * 5


def test_a_step_comes_after_every_so_many_rounds():
    assert rates("step(every=2, gamma=0.5)", 6) == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_milestones_are_rounds_or_shares_of_all_rounds():
    assert rates("multistep(milestones=[2, 4], gamma=0.1)", 5) == pytest.approx(
        [1, 1, 0.1, 0.1, 0.01]
    )
    assert rates("multistep(milestones=[0.5, 0.75], gamma=0.1)", 4) == pytest.approx(
        [1, 1, 0.1, 0.01]
    )


def test_cosine_falls_from_one_towards_its_end():
    found = rates("cosine(final=0.1)", 8)
    assert found[0] == 1.0
    assert found == sorted(found, reverse=True)
    assert found[4] == pytest.approx(0.55)
    assert found[-1] > 0.1
    assert math.isclose(sum(found), 8 * 0.55 + 0.45)


@pytest.mark.parametrize("name", sorted(schedule.names()))
def test_every_schedule_begins_at_the_full_rate(name):
    options = {"step": "step(every=3)"}
    assert schedule.make(options.get(name, name))(1, 10) == 1.0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("stpe(every=2)", "did you mean 'step'"),
        ("step", "every"),
        ("step(every=0)", "at least 1"),
        ("step(every=1.5)", "whole number"),
        ("step(every='two')", "every"),
        ("step(every=2, gamma='half')", "gamma"),
        ("step(every=2, gamma=-0.5)", "gamma"),
        ("multistep(milestones=[])", "milestones"),
        ("multistep(milestones=[0])", "positive"),
        ("multistep(milestones=3)", "milestones"),
        ("multistep(milestones=['a'])", "milestones"),
        ("multistep(gamma=0)", "gamma"),
        ("cosine(final='low')", "final"),
        ("cosine(final=-1)", "final"),
        ("cosine(end=0)", "end"),
    ],
)
def test_what_is_no_schedule_is_refused(spec, message):
    with pytest.raises(ConfigError, match=message):
        schedule.make(spec)


def test_the_rate_follows_the_round_whoever_takes_part(make, folder):
    """0.1, halved every two rounds: whoever is first sampled in round 5 trains with 0.025."""
    asked = make(lr=0.1, schedule="step(every=2, gamma=0.5)", cohort=1, rounds=6)
    run(asked, folder)
    lines = events(folder, "round")
    assert [line["lr"] for line in lines] == pytest.approx([0.1, 0.1, 0.05, 0.05, 0.025, 0.025])
    newcomers = set(lines[4]["cohort"]) - {c for line in lines[:4] for c in line["cohort"]}
    assert lines[4]["lr"] == pytest.approx(0.025), newcomers
