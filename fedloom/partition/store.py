"""A partition on disk: NAME.npz with the arrays, NAME.json with the rest and the fingerprints."""

import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from fedloom.errors import PartitionError
from fedloom.files import write_atomic
from fedloom.partition.labels import align, fingerprint
from fedloom.partition.partition import FORMAT_VERSION, Partition, verify_rows

ARRAYS = ("order", "offsets", "dropped")
FACT = "fact_"
FIELDS = ("strategy", "params", "seed", "rng", "tries", "inputs_sha256", "overlapping")


def save(partition: Partition, path: str | Path) -> None:
    """Write NAME.npz, then NAME.json, each whole or not at all."""
    text, numbers = _paths(path)
    arrays = {name: getattr(partition, name).astype("<i8", copy=False) for name in ARRAYS}
    arrays |= {FACT + name: value for name, value in partition.facts.items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    record: dict[str, Any] = {name: getattr(partition, name) for name in FIELDS}
    record |= {
        "format_version": partition.format_version,
        "classes": list(partition.classes),
        "num_rows": partition.num_rows,
        "num_clients": partition.num_clients,
        "warnings": list(partition.warnings),
        "labels_sha256": partition.labels_sha256,
        "digest": partition.digest,
        "arrays_sha256": {name: _array_sha256(value) for name, value in arrays.items()},
    }
    record["record_sha256"] = _record_sha256(record)
    numbers.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(numbers, [buffer.getbuffer()], buffer.getbuffer().nbytes)
    encoded = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False).encode()
    write_atomic(text, [encoded], len(encoded))


def load(path: str | Path, labels: Any) -> Partition:
    """Read a partition, refusing whatever was changed or made for other labels."""
    text, numbers = _paths(path)
    record = _read_record(text)
    arrays = _read_arrays(numbers)
    positions = _positions(record, labels, text)
    try:
        verify_rows(
            arrays["order"],
            arrays["offsets"],
            arrays["dropped"],
            len(positions),
            record["overlapping"],
        )
    except PartitionError as error:
        raise PartitionError(f"{numbers}: {error}") from None
    found = {name: _array_sha256(value) for name, value in arrays.items()}
    if found != record["arrays_sha256"]:
        raise PartitionError(
            f"{numbers} doesn't belong to {text.name}: its fingerprints differ; make the partition "
            "again"
        )
    partition = Partition(
        order=arrays["order"],
        offsets=arrays["offsets"],
        dropped=arrays["dropped"],
        **{name: record[name] for name in FIELDS},
        positions=positions,
        classes=tuple(record["classes"]),
        warnings=tuple(record["warnings"]),
        facts={name[len(FACT) :]: v for name, v in arrays.items() if name.startswith(FACT)},
    )
    if (partition.num_clients, partition.digest) != (record["num_clients"], record["digest"]):
        raise PartitionError(f"{numbers}: the digest is not the one stored in {text.name}")
    return partition


def _paths(path: str | Path) -> tuple[Path, Path]:
    whole = Path(path)
    stem = whole.with_suffix("") if whole.suffix in (".json", ".npz") else whole
    return stem.with_name(stem.name + ".json"), stem.with_name(stem.name + ".npz")


def _read_record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PartitionError(f"{path} can't be read as a stored partition: {error}") from None
    if not isinstance(record, dict) or "format_version" not in record:
        raise PartitionError(f"{path} is not a stored partition: it has no format_version")
    if record["format_version"] != FORMAT_VERSION:
        raise PartitionError(
            f"{path} has format version {record['format_version']!r}, this library reads "
            f"{FORMAT_VERSION}; make the partition again"
        )
    if record.get("record_sha256") != _record_sha256(record):
        raise PartitionError(f"{path} was changed after it was written; make the partition again")
    return record


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise PartitionError(f"{path} can't be read as a stored partition: {error}") from None
    for name in ARRAYS:
        if name not in arrays:
            raise PartitionError(f"{path} has no array {name!r}; it is not a stored partition")
        if arrays[name].dtype != np.int64 or arrays[name].ndim != 1 or arrays["order"].ndim != 1:
            raise PartitionError(
                f"{path}: {name} must be a flat int64 array, not {arrays[name].dtype} of shape "
                f"{arrays[name].shape}"
            )
    if not len(arrays["offsets"]):
        raise PartitionError(f"{path}: offsets are empty; it is not a stored partition")
    return arrays


def _positions(record: dict[str, Any], labels: Any, path: Path) -> np.ndarray:
    positions = align(labels, record["classes"])
    if len(positions) != record["num_rows"]:
        raise PartitionError(
            f"{path} divides a data set of {record['num_rows']} rows, but these labels have "
            f"{len(positions)}; make a partition of these data"
        )
    if fingerprint(positions) != record["labels_sha256"]:
        differ = "their fingerprint differs from the stored one"
        raise PartitionError(
            f"{path} was made for other labels of the same number: {differ}; make a partition of "
            "these data, in their present order"
        )
    return positions


def _array_sha256(array: np.ndarray) -> str:
    head = f"{array.dtype.str}|{array.shape}|".encode()
    digest = hashlib.sha256(head)
    digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _record_sha256(record: dict[str, Any]) -> str:
    rest = {key: value for key, value in record.items() if key != "record_sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
