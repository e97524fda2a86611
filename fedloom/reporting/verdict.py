"""What the numbers allow one to say, in a few plain sentences, and no more than that."""

from fedloom.reporting import stats, words
from fedloom.reporting.rows import Row
from fedloom.reporting.summary import Comparison


def verdict(comparison: Comparison) -> tuple[str, ...]:
    """The best method by mean, by how much, whether that lies inside the noise, and at what cost.

    The first sentence is the headline. Methods with trials that are not averaged are ranked only if
    no other method has all of its trials.
    """
    ranked = ranking(comparison)
    if not ranked:
        return ("No method has a run that can be averaged.", *_excluded(comparison))
    best = ranked[0]
    sentences = [_headline(comparison, ranked)]
    if len(ranked) > 1 and len(leaders(ranked)) == 1:
        sentences += _gaps(comparison, ranked)
    sentences += _cost(comparison, leaders(ranked)) + _constant(best)
    sentences += _references(comparison, best)
    return (*sentences, *_excluded(comparison))


def ranking(comparison: Comparison) -> list[Row]:
    """Methods by mean final accuracy, highest first."""
    rows = [row for row in comparison.rows if row.usable]
    rows = [row for row in rows if row.complete] or rows
    return sorted(rows, key=_mean, reverse=True)


def _mean(row: Row) -> float:
    return row.final("accuracy").mean or 0.0


def leaders(ranked: list[Row]) -> list[Row]:
    """Those of the ranked rows that share the highest mean."""
    return [row for row in ranked if abs(_mean(row) - _mean(ranked[0])) < 1e-12]


def _headline(comparison: Comparison, ranked: list[Row]) -> str:
    best = ranked[0]
    figure = best.final("accuracy")
    value = f"{words.percent(figure.mean)} %"
    if figure.std is not None:
        value += f" ± {words.percent(figure.std)}"
    alone = figure.n < 2
    tail = " in one trial: no spread; not evidence of a difference." if alone else "."
    if len(comparison.rows) == 1:
        ending = " in one trial: no spread" if alone else f" ({words.plural(figure.n, 'trial')})"
        return f"{best.full} ends at {value}{ending}; there is no other method to compare it with."
    if len(tied := leaders(ranked)) > 1:
        names = words.listing([row.full for row in tied])
        return (
            f"{names} tie at the highest mean final accuracy, {words.percent(figure.mean)} %{tail}"
        )
    if alone:
        return f"{best.full} has the highest final accuracy, {value},{tail}"
    count = words.plural(figure.n, "trial")
    return f"{best.full} has the highest mean final accuracy: {value} ({count})."


def _gaps(comparison: Comparison, ranked: list[Row]) -> list[str]:
    best, second = ranked[0], ranked[1]
    base = comparison.baseline
    others = [] if base is None or base is best or base not in ranked else [base]
    others += [] if second in others else [second]
    return [_gap(best.difference(other), other) for other in others]


def _gap(gap: stats.Difference | None, other: Row) -> str:
    if gap is None:
        return f"It shares no trial with {other.full}, so their difference has no paired test."
    ahead = f"{words.percent(abs(gap.mean))} points {'above' if gap.mean >= 0 else 'below'}"
    if gap.contains_zero is None:
        return f"It is {ahead} {other.full} in the one trial they share."
    span = f"95 % interval {words.interval(gap.low, gap.high)}, {words.plural(gap.n, 'pair')}"
    if gap.contains_zero:
        return f"It is {ahead} {other.full} ({span}): inside the noise of these trials."
    return f"It is {ahead} {other.full} ({span}): more than the noise of these trials."


def _cost(comparison: Comparison, best: list[Row]) -> list[str]:
    """What each of the best takes, named where there are several."""
    base = comparison.baseline
    others = [] if base is None else [row for row in best if row is not base]
    return [
        f"{row.full if len(best) > 1 else 'It'} takes {words.listing(parts)} of {base.full}."
        for row in others
        if base is not None and (parts := _times(row, base))
    ]


def _times(best: Row, base: Row) -> list[str]:
    parts = []
    for noun, mine, theirs in (
        ("bytes", best.bytes.mean, base.bytes.mean),
        ("training seconds", best.cost("seconds").mean, base.cost("seconds").mean),
    ):
        if mine is not None and theirs:
            parts.append(f"{mine / theirs:.2f} times the {noun}")
    return parts


def _constant(best: Row) -> list[str]:
    level = best.spread(lambda run: run.total("constant_baseline")).mean
    if level is None or _mean(best) > level + 0.005:
        return []
    share = words.percent(level)
    return [f"No method is better than always giving the most frequent class ({share} %)."]


def _references(comparison: Comparison, best: Row) -> list[str]:
    sentences = []
    for row in comparison.references:
        mean = row.final("accuracy").mean
        if mean is not None:
            paired = best.difference(row)
            gap = _mean(best) - mean if paired is None else paired.mean
            side = "above" if gap >= 0 else "below"
            span = "" if paired is None else _span(paired, max(len(best.usable), len(row.usable)))
            sentences.append(
                f"The best method ends {words.percent(abs(gap))} points {side} the reference "
                f"{row.name} ({words.percent(mean)} %{span})."
            )
    return sentences


def _span(gap: stats.Difference, trials: int) -> str:
    """The interval of a difference, or that it stands on one of several trials."""
    if gap.low is None:
        return "; in the one trial they share" if trials > 1 else ""
    ends = words.interval(gap.low, gap.high)
    return f"; 95 % interval {ends}, {words.plural(gap.n, 'pair')}"


def _excluded(comparison: Comparison) -> list[str]:
    sentences = []
    for row in comparison.rows:
        if row.excluded:
            why = words.listing([f"{count} {reason}" for reason, count in row.excluded.items()])
            if len(row.runs) == 1:
                sentences.append(f"{row.full} is not ranked: {next(iter(row.excluded))}.")
                continue
            ranked = "" if row.usable else ", so it has no mean"
            total = words.plural(len(row.runs), "trial")
            sentences.append(f"Of {total} of {row.full}, {why}: not averaged{ranked}.")
    return sentences
