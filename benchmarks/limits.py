"""FedLoom against its own limits: `python benchmarks/limits.py --out DIR`.

How near a round is to the arithmetic it consists of, what is spent outside of it, what a second
process gives, and what a method costs over FedAvg. Writes limits.md and limits.json.
"""

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

# another distribution of the peers installs a package of the same name
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import arithmetic, compare, kernels, launch
from benchmarks.work import WORKLOADS, Work
from fedloom import RunConfig
from fedloom.record import environment

SECTIONS = ("bound", "kernels", "processes", "methods", "precision")
METHODS = {"fedprox": "fedprox(mu=0.01)", "scaffold": "scaffold"}
VGG_TARGET = 0.85
METHOD_TARGETS = {"fedprox": 1.05, "scaffold": 1.10}
"""Time of a round over FedAvg's, at most."""


@dataclass(frozen=True)
class Finding:
    """One measured figure."""

    section: str
    what: str
    value: float
    """Of the fastest round or product, where something was repeated."""
    unit: str
    target: str = ""
    met: bool | None = None
    note: str = ""


class Failed(Exception):
    """A run of FedLoom that gave no seconds."""


class Bench:
    """Runs FedLoom's variants interleaved; the same run is measured once."""

    def __init__(self, asked: argparse.Namespace, options: dict[str, str]) -> None:
        self.asked, self.options = asked, options
        self.rate = 0.0
        """Operations a second of the matrix product, on one core."""

    def work(self, name: str) -> Work:
        """A workload, cut down where only a quick look is wanted."""
        return WORKLOADS[name].small() if self.asked.quick else WORKLOADS[name]

    def seconds(
        self, work: Work, variants: dict[str, dict[str, str]], cores: dict[str, int] | None = None
    ) -> dict[str, list[float]]:
        """Measured rounds of each variant: `variants` are settings by name, one core if not said.

        Raises Failed with what a run wrote if it broke.
        """
        found: dict[str, list[float]] = {name: [] for name in variants}
        for repeat in range(self.asked.repeats):
            for name, changes in variants.items():
                run = launch.start(
                    "fedloom",
                    work,
                    rounds=self.asked.rounds + 1,
                    cores=(cores or {}).get(name, 1),
                    seed=repeat,
                    options={**self.options, **changes},
                    timeout=compare.TIMEOUT,
                )
                if "error" in run:
                    raise Failed(f"{work.name}, {name}: {run['error']}")
                found[name] += run["seconds"][1:]
                print(f"{work.name}, {name}: {min(found[name]):.3f} s", file=sys.stderr, flush=True)
        return found


def bound(bench: Bench) -> list[Finding]:
    """How long a round's matrix products and convolutions alone would take."""
    found = [
        Finding("bound", "matrix product of two 2048 x 2048 float32", bench.rate / 1e9, "GFLOP/s")
    ]
    for name in ("tabular", "image28", "image32", "vgg11"):
        work = bench.work(name)
        seconds = min(bench.seconds(work, {"fedavg": {}})["fedavg"])
        flops = arithmetic.round_flops(work)
        share = flops / seconds / bench.rate
        target = name == "vgg11"
        found += [
            Finding("bound", f"{name}: arithmetic of a round", flops / 1e9, "GFLOP"),
            Finding("bound", f"{name}: a round at that rate", flops / bench.rate, "s"),
            Finding("bound", f"{name}: a round", seconds, "s"),
            Finding(
                "bound",
                f"{name}: rate of a round over the matrix product's",
                share,
                "",
                f"at least {VGG_TARGET}" if target else "",
                share >= VGG_TARGET if target else None,
            ),
        ]
    return found


def outside(bench: Bench) -> list[Finding]:
    """The share of a round that no tensor operation accounts for, under torch's profiler."""
    found = []
    for name in ("tabular", "image28"):
        for executor in ("loop", "mapped"):
            try:
                seen = kernels.profile(bench.work(name), {**bench.options, "executor": executor})
            except RuntimeError as problem:
                raise Failed(str(problem)) from problem
            note = f"the profiler makes a round {seen.slowdown:.2f} times as long"
            what = f"{name}, executor {executor}: time outside tensor operations"
            found.append(Finding("kernels", what, seen.outside, "of a round", note=note))
    return found


def processes(bench: Bench) -> list[Finding]:
    """What two processes on two cores give over one on one."""
    if len(launch.usable_cores()) < 2:
        note = "not measured: one core is usable here"
        return [Finding("processes", "two processes over one", math.nan, "", note=note)]
    found = []
    for name in ("tabular", "image28", "image32"):
        cores = {"one": 1, "two": 2}
        rounds = bench.seconds(bench.work(name), {"one": {}, "two": {}}, cores)
        gain = min(rounds["one"]) / min(rounds["two"])
        found.append(Finding("processes", f"{name}: speed of two over one", gain, "times"))
    if "workers" not in RunConfig.model_fields:
        note = "this version trains clients in one process"
        found.append(Finding("processes", "setting workers", math.nan, "", note=note))
    return found


def methods(bench: Bench) -> list[Finding]:
    """Time of a round of other methods over FedAvg's."""
    found = []
    for name in ("tabular", "image28"):
        variants = {"fedavg": {}, **{key: {"method": text} for key, text in METHODS.items()}}
        rounds = bench.seconds(bench.work(name), variants)
        for method, most in METHOD_TARGETS.items():
            ratio = min(rounds[method]) / min(rounds["fedavg"])
            middle = median(rounds[method]) / median(rounds["fedavg"])
            found.append(
                Finding(
                    "methods",
                    f"{name}: {method} over fedavg",
                    ratio,
                    "times",
                    f"at most {most}",
                    ratio <= most,
                    f"of medians {middle:.3f}",
                )
            )
    return found


def precision(bench: Bench) -> list[Finding]:
    """What bfloat16 gives, where this version has it."""
    if "precision" not in RunConfig.model_fields:
        note = "not measured: this version has no setting of that name"
        return [Finding("precision", "bfloat16", math.nan, "", note=note)]
    found = []
    for name in ("image28", "vgg11"):
        variants = {"float32": {}, "bfloat16": {"precision": "bfloat16"}}
        rounds = bench.seconds(bench.work(name), variants)
        gain = min(rounds["float32"]) / min(rounds["bfloat16"])
        found.append(Finding("precision", f"{name}: speed of bfloat16 over float32", gain, "times"))
    return found


def main() -> int:
    """Measure what the command line asks for."""
    asked = parser().parse_args()
    launch.end_cleanly_when_told()
    out = Path(asked.out)
    out.mkdir(parents=True, exist_ok=True)
    try:
        options = compare.pairs(asked.fedloom)
    except ValueError as problem:
        parser().error(str(problem))
    bench = Bench(asked, options)
    bench.rate = arithmetic.product_rate(repeats=3 if asked.quick else 20)
    parts = {
        "bound": bound,
        "kernels": outside,
        "processes": processes,
        "methods": methods,
        "precision": precision,
    }
    found: list[Finding] = []
    failures: list[str] = []
    for section in asked.sections:
        try:
            found += parts[section](bench)
        except Failed as problem:
            failures.append(f"{section}: {problem}")
        keep(out, bench, found, failures)
    print((out / "limits.md").read_text(encoding="utf-8"))
    return int(bool(failures))


def keep(out: Path, bench: Bench, found: list[Finding], failures: list[str]) -> None:
    """Write what there is; called after every section, so that a stopped run leaves its figures."""
    text = compare.header(bench.asked, bench.options) + "\n" + table(found, failures)
    (out / "limits.md").write_text(text, encoding="utf-8")
    kept: dict[str, Any] = {
        "environment": environment.collect(),
        "settings": {**vars(bench.asked), "fedloom": bench.options},
        "findings": [asdict(each) for each in found],
        "failures": failures,
    }
    (out / "limits.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("--out", required=True, help="folder for limits.md and limits.json")
    made.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    made.add_argument("--repeats", type=int, default=3, help="processes a variant, interleaved")
    made.add_argument("--rounds", type=int, default=3, help="measured rounds a process")
    made.add_argument("--quick", action="store_true", help="tiny work: only to see that all runs")
    made.add_argument("--fedloom", nargs="+", default=[], metavar="KEY=VALUE")
    return made


def table(found: list[Finding], failures: list[str]) -> str:
    """All findings as Markdown, and what failed."""
    lines = ["| Section | What | Figure | Target | |", "| :--- | :--- | ---: | :--- | :--- |"]
    for each in found:
        figure = "–" if math.isnan(each.value) else f"{each.value:.4g} {each.unit}".strip()
        verdict = {None: "", True: "met", False: "missed"}[each.met]
        said = "; ".join(filter(None, (verdict, each.note)))
        lines.append(f"| {each.section} | {each.what} | {figure} | {each.target} | {said} |")
    for failure in failures:
        lines += ["", "Failed:", "", "```text", failure, "```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
