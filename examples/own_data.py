"""A table of your own whose rows belong to sites: look at it, then compare methods on it.

python examples/own_data.py

The table is made up here so that the script needs nothing else: 600 patients of five hospitals of
unlike size, whose age and share of smokers differ from hospital to hospital.
"""

import csv
from pathlib import Path

import numpy as np

import fedloom
from fedloom import data

OUT = Path("runs/own-data")
COLUMNS = ("age", "pressure", "smoker", "hospital", "outcome")
READ = {"label": "outcome", "client": "hospital", "categorical": "onehot", "scale": "standard"}


def write_table(path: Path) -> None:
    """A CSV file with a header, numbers, a text column, a client column and a label."""
    draw = np.random.default_rng(0)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(COLUMNS)
        for place, size in enumerate((240, 160, 100, 60, 40)):
            for _ in range(size):
                age = draw.normal(45 + 6 * place, 12)
                smoker = draw.random() < 0.1 + 0.15 * place
                pressure = draw.normal(110 + 0.4 * age, 10)
                score = 0.05 * (age - 55) + 0.04 * (pressure - 132) + 1.2 * smoker
                ill = draw.random() < 1 / (1 + np.exp(-3 * score))
                words = ("yes" if smoker else "no", f"site {place + 1}", "ill" if ill else "well")
                lines.writerow((f"{age:.1f}", f"{pressure:.1f}", *words))


def main() -> None:
    """Write the table, inspect it, compare two methods and each hospital on its own."""
    table = OUT / "patients.csv"
    write_table(table)
    seen = data.inspect(table, **READ)
    print(f"{seen.num_train} training and {seen.num_test} test rows, {seen.test_rule}")
    for name, train, test in seen.clients:
        print(f"  {name}: {train} training, {test} test rows")
    for note in seen.notes:
        print(f"  note: {note}")

    comparison = fedloom.compare(
        data=table,
        **READ,
        partition="by_group",
        model="mlp(hidden=[8], init='default')",
        methods=["fedavg", "scaffold"],
        trials=1,
        lr=0.1,
        local_epochs=2,
        rounds=5,
        out=OUT / "comparison",
        overwrite=True,
    )
    for name, run in comparison.runs.items():
        print(f"{name:24} {run.accuracy:.3f}")
    print(f"open {fedloom.report(comparison.path).html}")


if __name__ == "__main__":
    main()
