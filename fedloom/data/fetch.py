"""Sets that other libraries serve: Hugging Face `datasets` and scikit-learn, imported late."""

import contextlib
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import numpy as np

from fedloom.data.holdout import stratified
from fedloom.errors import DataError

HUB: dict[str, tuple[str, str | None, str, str]] = {
    "mnist": ("ylecun/mnist", None, "image", "label"),
    "fashion_mnist": ("zalando-datasets/fashion_mnist", None, "image", "label"),
    "cifar10": ("uoft-cs/cifar10", None, "img", "label"),
    "cifar100": ("uoft-cs/cifar100", None, "img", "fine_label"),
    "svhn": ("ufldl-stanford/svhn", "cropped_digits", "image", "label"),
    "femnist": ("flwrlabs/femnist", None, "image", "character"),
}
FEMNIST_ROWS = 814_277


def fetch(name: str, missing: str) -> tuple[dict[str, Any], str]:
    """Arrays and their source; `missing` says what to put where should that fail.

    Raises DataError within seconds where there is no network.
    """
    if name in HUB:
        return from_hub(name, missing, _load_dataset(name, missing))
    if name in ("rcv1", "covtype"):
        return _from_scikit(name, missing)
    raise DataError(f"{name}: no library serves it in this form; {missing}")


def reachable(url: str, seconds: float = 8.0) -> bool:
    """Whether the server at `url` answers anything at all in time; name look-up counts too."""
    answers: list[bool] = []

    def ask() -> None:
        with contextlib.suppress(OSError, ValueError):
            with contextlib.suppress(urllib.error.HTTPError):
                request = urllib.request.Request(url, method="HEAD")
                urllib.request.urlopen(request, timeout=seconds).close()
            answers.append(True)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
    return bool(answers)


def _load_dataset(name: str, missing: str) -> Callable[..., Any]:
    try:
        from datasets import load_dataset
    except ImportError:
        raise DataError(
            f"{name}: not found in a local folder, and the package 'datasets' that could download "
            f"it is not installed (pip install 'fedloom[hf]'). Offline, {missing}"
        ) from None
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    host = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    if not offline and not reachable(host):
        raise DataError(
            f"{name}: {host} does not answer. Offline, {missing}; "
            "or set HF_HUB_OFFLINE=1 if it was downloaded before"
        )
    return load_dataset


def from_hub(
    name: str, missing: str, load_dataset: Callable[..., Any]
) -> tuple[dict[str, Any], str]:
    """Rows of a Hugging Face data set -> arrays x_train, y_train, x_test, y_test."""
    path, config, image, label = HUB[name]
    try:
        parts = load_dataset(path, config)
        if name == "femnist":
            return _femnist(parts["train"], image, label), f"Hugging Face {path}"
        arrays: dict[str, Any] = {}
        for part in ("train", "test"):
            arrays[f"x_{part}"] = _stack(parts[part][image])
            arrays[f"y_{part}"] = np.asarray(parts[part][label])
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise DataError(
            f"{name}: Hugging Face {path} failed ({error}). Offline, {missing}"
        ) from error
    return arrays, f"Hugging Face {path}"


def _stack(images: Any) -> np.ndarray:
    return np.stack([np.asarray(image) for image in images])


def _femnist(rows: Any, image: str, label: str) -> dict[str, Any]:
    characters = np.asarray(rows[label])
    if len(characters) != FEMNIST_ROWS:
        raise DataError(f"femnist: {len(characters):,} rows served, expected {FEMNIST_ROWS:,}")
    digits = rows.select(np.flatnonzero(characters < 10))
    x, y = _stack(digits[image]), np.asarray(digits[label])
    ids = np.asarray(digits["writer_id"])
    train, test = stratified(np.unique(ids, return_inverse=True)[1].reshape(-1), 0.1, seed=0)
    return {
        "x_train": x[train], "y_train": y[train], "writer_train": ids[train],
        "x_test": x[test], "y_test": y[test], "writer_test": ids[test],
        "rows": (len(train), len(test)),
        "test_rule": "10 % of each writer's rows, fixed",
        "notes": (
            "this source has no test part and other row counts than the benchmark's "
            "341,873 / 40,832; a tenth of each writer's rows is held out",
        ),
    }  # fmt: skip


def _from_scikit(name: str, missing: str) -> tuple[dict[str, Any], str]:
    from sklearn import datasets

    get = {"rcv1": datasets.fetch_rcv1, "covtype": datasets.fetch_covtype}[name]
    try:
        bunch = get(download_if_missing=False)
    except OSError:
        if not reachable("https://ndownloader.figshare.com"):
            raise DataError(
                f"{name}: not found in a local folder or scikit-learn's cache, and its server does "
                f"not answer. Offline, {missing}"
            ) from None
        try:
            bunch = get(n_retries=1, delay=1.0)
        except OSError as error:
            raise DataError(f"{name}: download failed ({error}). Offline, {missing}") from error
    if name == "covtype":
        return {"x": bunch.data, "y": bunch.target}, "scikit-learn fetch_covtype"
    return rcv1_binary(
        bunch.data, bunch.target, list(bunch.target_names)
    ), "scikit-learn fetch_rcv1"


def rcv1_binary(data: Any, target: Any, names: list[str]) -> dict[str, Any]:
    """LYRL2004's training part -> CCAT or ECAT (1) against GCAT or MCAT (0).

    Documents in both, or in neither, are left out.
    """
    first = slice(0, 23_149)
    member = {topic: target[first, names.index(topic)].toarray().ravel() > 0
              for topic in ("CCAT", "ECAT", "GCAT", "MCAT")}  # fmt: skip
    positive, negative = member["CCAT"] | member["ECAT"], member["GCAT"] | member["MCAT"]
    kept = np.flatnonzero(positive != negative)
    return {"x": data[first][kept].astype(np.float32), "y": positive[kept].astype(np.int64)}
