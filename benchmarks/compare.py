"""FedLoom and its peers on the same work: `python benchmarks/compare.py --out DIR`.

Repeats are interleaved (A, B, C, A, B, C, ...), every job runs in a process of its own, all on the
same cores with one thread a process. Writes compare.md and compare.json; ends with code 1 if a
system failed or did other work than the plain loop.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

# another distribution of the peers installs a package of the same name
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import launch, summary
from benchmarks.work import WORKLOADS, Work
from fedloom.record import environment

DEFAULT = ("tabular", "image28", "image32")
TIMEOUT = 3600.0


def main() -> int:
    """Measure what the command line asks for."""
    asked = parser().parse_args()
    launch.end_cleanly_when_told()
    out = Path(asked.out)
    out.mkdir(parents=True, exist_ok=True)
    try:
        options = pairs(asked.fedloom)
        check_cores(asked.cores)
    except ValueError as problem:
        parser().error(str(problem))
    found: list[summary.Row] = []
    for runs in measure(
        works=works(asked.workloads, asked.quick),
        systems=asked.systems,
        cores=asked.cores,
        repeats=asked.repeats,
        rounds=asked.rounds,
        options=options,
        timeout=asked.timeout,
    ):
        found = summary.rows(runs)
        keep(out, asked, options, runs, found)
    print((out / "compare.md").read_text(encoding="utf-8"))
    return int(any(row.error or row.agrees is False for row in found))


def keep(
    out: Path,
    asked: argparse.Namespace,
    options: dict[str, str],
    runs: summary.Runs,
    found: list[summary.Row],
) -> None:
    """Write what there is; called after every repeat, so that a stopped run leaves its figures."""
    text = header(asked, options) + "\n" + summary.markdown(found)
    (out / "compare.md").write_text(text, encoding="utf-8")
    kept = {
        "environment": environment.collect(),
        "settings": {**vars(asked), "fedloom": options},
        "rows": [asdict(row) for row in found],
        "runs": [{"key": key, "runs": each} for key, each in runs.items()],
    }
    (out / "compare.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("--out", required=True, help="folder for compare.md and compare.json")
    made.add_argument("--workloads", nargs="+", choices=sorted(WORKLOADS), default=list(DEFAULT))
    made.add_argument("--systems", nargs="+", choices=launch.systems(), default=launch.systems())
    made.add_argument("--cores", nargs="+", type=int, default=[1, 2], help="numbers of cores")
    made.add_argument("--repeats", type=int, default=3, help="processes a system and workload")
    made.add_argument(
        "--rounds", type=int, default=3, help="measured rounds a process, after one to warm up"
    )
    made.add_argument("--quick", action="store_true", help="tiny work: only to see that all runs")
    made.add_argument("--timeout", type=float, default=TIMEOUT, help="seconds a process may take")
    made.add_argument(
        "--fedloom",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="settings for FedLoom; {processes} stands for the number of processes",
    )
    return made


def pairs(given: list[str]) -> dict[str, str]:
    """`["a=1"]` -> `{"a": "1"}`. Raises ValueError where there is no sign of equality."""
    for text in given:
        if "=" not in text:
            raise ValueError(f"--fedloom {text}: expected KEY=VALUE, such as executor=loop")
    return {text.partition("=")[0]: text.partition("=")[2] for text in given}


def check_cores(asked: list[int]) -> None:
    """Raises ValueError for numbers of cores that can't be had."""
    usable = len(launch.usable_cores())
    for number in asked:
        if not 1 <= number <= usable:
            raise ValueError(f"--cores {number}: expected 1 to {usable}, the cores usable here")


def works(names: list[str], quick: bool) -> list[Work]:
    """The workloads by name, cut down where only a quick look is wanted."""
    return [WORKLOADS[name].small() if quick else WORKLOADS[name] for name in names]


def measure(
    *,
    works: list[Work],
    systems: list[str],
    cores: list[int],
    repeats: int,
    rounds: int,
    options: dict[str, str],
    timeout: float,
) -> Iterator[summary.Runs]:
    """After each repeat all runs so far by (workload, cores, system); tells on stderr how far."""
    keys = [(work.name, n, system) for work in works for n in cores for system in systems]
    runs: summary.Runs = {key: [] for key in keys}
    by_name = {work.name: work for work in works}
    for repeat in range(repeats):
        for name, number, system in keys:
            run = launch.start(
                system,
                by_name[name],
                rounds=rounds + 1,
                cores=number,
                seed=repeat,
                options=options if system == "fedloom" else {},
                timeout=timeout,
            )
            runs[name, number, system].append(run)
            told = "failed" if "error" in run else f"{min(run['seconds'][1:]):.3f} s/round"
            where = f"repeat {repeat + 1}/{repeats}, {name}, {number} cores, {system}"
            print(f"{where}: {told}", file=sys.stderr, flush=True)
        yield runs


def header(asked: argparse.Namespace, options: dict[str, str]) -> str:
    """What the tables below it were measured with."""
    made = environment.collect()
    commit = (made["commit"] or {}).get("id", "not a checkout")
    told = ", ".join(f"{key}={value}" for key, value in options.items()) or "defaults"
    quick = " Cut-down work: the times say nothing." if asked.quick else ""
    return (
        f"FedLoom {made['fedloom']} ({commit}), torch {made['packages']['torch']}, Python "
        f"{made['python']}. One thread a process; FedLoom's settings: {told}. {asked.repeats} "
        f"interleaved repeats of {asked.rounds} measured rounds after one to warm up.{quick}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
