"""Rounds on an accelerator against the CPU: seconds, speed-up, and whether both agree.

python -m benchmarks.gpu --device cuda [--rounds 4] [--out DIR]

Takes a few minutes. The first round warms up (and compiles) and isn't counted; the models after
the last round are compared with the CPU's, leaf by leaf.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import fedloom

WORK: dict[str, dict[str, Any]] = {
    "mlp": {"data": "digits", "model": "mlp", "clients": 10, "local_epochs": 10},
    "cnn": {"data": "IMAGES", "model": "cnn", "clients": 10, "local_epochs": 5},
}
WAYS = {
    "loop": {"executor": "loop", "compiled": False},
    "lanes": {"executor": "mapped", "compiled": False},
    "lanes, compiled": {"executor": "mapped", "compiled": True},
}


def main() -> None:
    """Print one line a workload and way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder:
        base = chosen.out or Path(folder)
        print(f"{'work':5} {'way':16} {'cpu s':>8} {'there s':>8} {'times':>6} {'largest gap':>12}")
        for work, settings in WORK.items():
            if settings["data"] == "IMAGES":
                settings = {**settings, "data": _images(base / "images.npz")}
            for way, extra in WAYS.items():
                slug = f"{work}-{way.replace(', ', '-')}"
                here, there = (
                    fedloom.run(
                        **settings,
                        **extra,
                        rounds=chosen.rounds,
                        workers=1,
                        device=device,
                        out=base / f"{slug}-{place}",
                        overwrite=True,
                    )
                    for place, device in (("here", "cpu"), ("there", chosen.device))
                )
                cpu, other = _seconds(here.path), _seconds(there.path)
                gap = max(
                    float((leaf - there.model[name]).abs().max())
                    for name, leaf in here.model.items()
                )
                print(f"{work:5} {way:16} {cpu:8.3f} {other:8.3f} {cpu / other:6.1f} {gap:12.1e}")


def _images(path: Path) -> str:
    """A file of 6,400 random 28x28 images of ten classes, each brighter in a part of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(0)
    y = draw.integers(10, size=7_400)
    x = draw.integers(0, 128, size=(7_400, 28, 28), dtype=np.uint8)
    for image, label in zip(x, y, strict=True):
        image[2 * label : 2 * label + 8] += 100
    np.savez(path, x_train=x[:6400], y_train=y[:6400], x_test=x[6400:], y_test=y[6400:])
    return str(path)


def _seconds(path: Path) -> float:
    """The quickest counted round."""
    lines = (path / "events.jsonl").read_text(encoding="utf-8").splitlines()
    rounds = [event for event in map(json.loads, lines) if event["event"] == "round"]
    return min(event["seconds"] for event in rounds[1:])


if __name__ == "__main__":
    main()
