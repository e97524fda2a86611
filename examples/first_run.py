"""One run and one comparison in Python, on data that need no download (some ten seconds).

python examples/first_run.py
"""

from pathlib import Path

import fedloom

OUT = Path("runs/first")


def main() -> None:
    """Train FedAvg once, then three methods under identical conditions, and write the report."""
    shared = {
        "data": "digits",
        "partition": "label_dirichlet(alpha=0.3)",
        "clients": 5,
        "model": "mlp(hidden=[32], init='default')",
        "lr": 0.1,
        "local_epochs": 2,
        "rounds": 4,
    }
    result = fedloom.run(method="fedavg", out=OUT / "fedavg", overwrite=True, **shared)
    print(f"FedAvg after the last round: {result.accuracy:.3f} of the test rows are right")
    print(f"it sent {result.result['bytes_up']:,} bytes up; the record is in {result.path}")

    comparison = fedloom.compare(
        methods=["fedavg", "fedprox(mu=0.1)", "scaffold"],
        trials=2,
        out=OUT / "comparison",
        overwrite=True,
        **shared,
    )
    for name, run in comparison.runs.items():
        print(f"{name:24} {run.accuracy:.3f}")
    report = fedloom.report(comparison.path)
    for sentence in report.sentences:
        print(sentence)
    print(f"open {report.html}")


if __name__ == "__main__":
    main()
