"""RunConfig: every setting of a run, in one place, checked as a whole before any work is done.

The command line's flags, the configuration file's keys and the Python API's keywords are the
fields of this class; their help is the fields' description.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from fedloom import config_checks, config_file, config_keys, config_values
from fedloom.config_keys import SettingsError
from fedloom.spec import Spec, parse

MAX_SEED = 2**32 - 1
EITHER = {
    "local_epochs": "local_steps",
    "local_steps": "local_epochs",
    "participation": "cohort",
    "cohort": "participation",
}


def _setting(default: Any, panel: str, text: str, **bounds: Any) -> Any:
    return Field(default, description=text, json_schema_extra={"panel": panel}, **bounds)


class RunConfig(BaseModel):
    """Every setting of one run; frozen, and equal settings have equal digests.

    >>> RunConfig(data="mnist", method="FedProx(mu=1e-3)", lr="1e-2").method
    'fedprox(mu=0.001)'

    Raises ConfigError (with every problem found, in one message) for anything that can't be used.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    data: str = _setting("fcube", "Data", "data set by name, or a file or folder of your own")
    data_dir: str | None = _setting(
        None, "Data", "folder with NAME.npz files (else FEDLOOM_DATA, else download)"
    )
    label: str | None = _setting(None, "Data", "own data: the column to predict")
    client: str | None = _setting(None, "Data", "own data: the column that says who holds a row")
    test: str | None = _setting(None, "Data", "own data: file with the test rows")
    test_share: float = _setting(
        config_checks.TEST_SHARE,
        "Data",
        "own data without a test file: share of rows kept for the test",
        gt=0,
        lt=1,
    )
    missing: Literal["refuse", "drop", "impute"] = _setting(
        "refuse", "Data", "own data: what to do with missing values"
    )
    data_seed: int = _setting(
        0, "Data", "seed of generated sets and of test rows cut off here", ge=0, le=MAX_SEED
    )
    separator: str | None = _setting(
        None, "Data", "own data: column separator, or tab (none: comma; tab for .tsv)"
    )
    decimal: Literal[".", ","] = _setting(".", "Data", "own data: decimal mark")

    scale: Literal["none", "standard"] = _setting(
        "none", "Data", "own data: standard gives numeric columns mean 0 and deviation 1"
    )
    categorical: Literal["refuse", "onehot"] = _setting(
        "refuse", "Data", "own data: what to do with text columns"
    )
    ignore: str | None = _setting(None, "Data", "own data: columns to leave out, with commas")
    size: int | None = _setting(
        None, "Data", "own pictures: height and width that all are resized to", ge=1
    )
    bad_files: Literal["refuse", "skip"] = _setting(
        "refuse", "Data", "own pictures: what to do with unreadable ones"
    )

    partition: str = _setting(
        "iid", "Partition", "who holds what, as in label_dirichlet(alpha=0.5) or label_count(k=2)"
    )
    clients: int | None = _setting(
        None,
        "Partition",
        "clients in the population (none: 10; fcube 4; by_group all groups)",
        ge=1,
    )
    partition_seed: int | None = _setting(
        None, "Partition", "seed of the partition (none: that of the run)", ge=0, le=MAX_SEED
    )
    partition_rng: Literal["default", "niid_legacy"] = _setting(
        "default", "Partition", "random generator; niid_legacy repeats NIID-Bench's splits"
    )
    validation: float = _setting(
        0.0,
        "Partition",
        "share of each client's rows held out for choosing, not training",
        ge=0,
        lt=1,
    )
    noise: float = _setting(
        0.0, "Partition", "feature skew: noise level sigma that grows from client to client", ge=0
    )
    noise_rule: Literal["niid_code", "paper", "summary"] = _setting(
        "niid_code", "Partition", "which of three published formulas gives a client's noise"
    )
    noise_refresh: Literal["fixed", "each_access"] = _setting(
        "fixed", "Partition", "one noisy data set, or new noise each time a row is read"
    )
    test_noise: Literal["clean", "party_union", "both"] = _setting(
        "clean", "Partition", "test rows: clean, one noisy copy for each client, or both scores"
    )

    model: str = _setting(
        "auto", "Model", "built-in model, or package.module:Class(option=1) (auto: cnn or mlp)"
    )
    head: str | None = _setting(None, "Model", "own model: name of its last layer")
    bn: Literal["average", "pooled", "local", "server_recalibrate", "groupnorm"] = _setting(
        "average", "Model", "what becomes of BatchNorm's running statistics"
    )
    augment: Literal["auto", "none", "flip", "crop_flip"] = _setting(
        "auto", "Model", "training images (auto: crop_flip for cifar10 and cifar100)"
    )

    method: str = _setting("fedavg", "Method", "federated method, as in fedprox(mu=0.01)")
    preset: Literal["niid_published", "niid_corrected"] | None = _setting(
        None, "Method", "NIID-Bench's settings as published, or with its defects corrected"
    )

    local_epochs: int | None = _setting(
        10, "Local training", "passes over a client's data each round", ge=1
    )
    local_steps: int | None = _setting(
        None, "Local training", "optimizer steps each round, in place of local_epochs", ge=1
    )
    batch_size: int = _setting(64, "Local training", "examples a batch", ge=1)
    lr: float | None = _setting(
        None, "Local training", "learning rate (none: 0.01; rcv1 0.1)", gt=0
    )
    momentum: float = _setting(
        0.9, "Local training", "momentum of SGD, from zero in each round", ge=0, lt=1
    )
    weight_decay: float = _setting(1e-5, "Local training", "L2 penalty on every parameter", ge=0)
    schedule: str = _setting(
        "constant",
        "Local training",
        "lr by round: constant, cosine, step(every=.., gamma=..), multistep(milestones=[..])",
    )

    rounds: int = _setting(50, "Rounds", "rounds (0: evaluate the initial model only)", ge=0)
    participation: float = _setting(
        1.0, "Rounds", "share of clients in each round; never fewer than one client", gt=0, le=1
    )
    cohort: int | None = _setting(
        None, "Rounds", "clients in each round, in place of participation", ge=1
    )
    sampler: str = _setting("uniform", "Rounds", "how each round's cohort is drawn")
    on_nonfinite: Literal["stop", "skip_client", "ignore"] = _setting(
        "skip_client",
        "Rounds",
        "a client's report has NaN: end the run, refuse the report, or count it all the same",
    )
    eval_every: int = _setting(1, "Rounds", "rounds between evaluations; the last always", ge=1)
    eval_batch: int = _setting(1000, "Rounds", "examples a batch of the evaluation", ge=1)
    checkpoint_every: int = _setting(1, "Rounds", "rounds between checkpoints", ge=1)
    seed: int = _setting(0, "Rounds", "seed of everything that is drawn", ge=0, le=MAX_SEED)

    executor: Literal["auto", "loop", "mapped"] = _setting(
        "auto", "Machine", "clients one after the other, or many at once; same results"
    )
    lanes: int = _setting(16, "Machine", "clients trained at once when mapped", ge=1)
    compiled: bool | None = _setting(
        None, "Machine", "compile the training steps (none: in lanes, when a run is long enough)"
    )
    workers: int | None = _setting(
        None, "Machine", "processes that train (none: one a core when a run is long enough)", ge=1
    )
    threads: int = _setting(1, "Machine", "processor threads of each process", ge=1)
    device: str = _setting("cpu", "Machine", "where clients train: cpu, cuda, cuda:1, mps")
    memory_budget: int = _setting(
        1024, "Machine", "MiB of RAM for what clients remember; the rest stays on disk", ge=0
    )
    precision: Literal["float32", "bfloat16"] = _setting(
        "float32", "Machine", "arithmetic of training; parameters and scores stay float32"
    )

    def __init__(self, **values: Any):
        fields = type(self).model_fields
        problems = config_keys.unknown_keys(values, fields)
        known = config_checks.one_of_two(
            {key: value for key, value in values.items() if key in fields}
        )
        broken: set[str] = set()
        try:
            super().__init__(**known)
        except ValidationError as error:
            for found in error.errors():
                name = str(found["loc"][0])
                broken.add(name)
                text = config_checks.problem(name, found["input"], found["msg"], fields[name])
                problems.append(text)
            super().__init__(**{key: value for key, value in known.items() if key not in broken})
        found_pairs = config_checks.contradictions(self)
        problems += [text for names, text in found_pairs if not broken & set(names)]
        if problems:
            raise SettingsError(problems)

    @field_validator("*", mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        assert info.field_name is not None
        return config_values.read(
            info.field_name, value, cls.model_fields[info.field_name].annotation
        )

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """The settings of a TOML or JSON file; unknown keys, other formats and tags are refused."""
        return cls(**config_file.read(path))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`."""
        return cls(**config_file.json_object(text, "the configuration"))

    def to_json(self) -> str:
        """Strict JSON with every field, in alphabetical order."""
        return json.dumps(self.model_dump(), sort_keys=True, allow_nan=False, indent=2)

    def replace(self, **changes: Any) -> Self:
        """The same settings with some changed, checked again.

        >>> RunConfig().replace(local_steps=5).local_epochs is None
        True
        """
        values: dict[str, Any] = self.model_dump()
        for key, value in changes.items():
            if value is not None and key in EITHER and EITHER[key] not in changes:
                values.pop(EITHER[key])
        return type(self)(**{**values, **changes})

    def spec(self, name: str) -> Spec:
        """One of `partition`, `model`, `method`, `schedule`, `sampler`, read."""
        return parse(getattr(self, name), name)

    @property
    def data_options(self) -> dict[str, Any]:
        """How the data set is read: what `fedloom.data.load` takes beside its name and folder."""
        names = ("label", "client", "test", "test_share", "missing", "separator", "decimal")
        more = ("scale", "categorical", "size", "bad_files")
        ignore = tuple(name.strip() for name in (self.ignore or "").split(",") if name.strip())
        return {name: getattr(self, name) for name in names + more} | {"ignore": ignore}

    @property
    def digest(self) -> str:
        """SHA-256 over all settings."""
        return hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()

    @property
    def data_name(self) -> str:
        """The data set without its options."""
        return name_of(self.data)

    @property
    def num_clients(self) -> int | None:
        """Clients in the population; None where the data's own groups decide."""
        partition = self.spec("partition")
        named = partition.options.get("clients", self.clients)
        if isinstance(named, int):
            return named
        if self.data_name == "fcube":
            return 4
        return None if partition.name in ("by_group", "real") else 10

    @property
    def depends_on_rounds(self) -> bool:
        """Whether another number of rounds would change the learning rates of the earlier ones."""
        schedule = self.spec("schedule")
        if schedule.name != "multistep":
            return schedule.name == "cosine"
        milestones = schedule.options.get("milestones", (0.5,))
        return isinstance(milestones, list | tuple) and any(0 < each < 1 for each in milestones)

    @property
    def learning_rate(self) -> float:
        """The client's learning rate before any schedule."""
        if self.lr is not None:
            return self.lr
        return 0.1 if self.data_name == "rcv1" else 0.01


def name_of(text: str) -> str:
    """What stands before the bracket, in small letters.

    >>> name_of("FCUBE(sign=-1)")
    'fcube'
    """
    return text.partition("(")[0].strip().lower()
