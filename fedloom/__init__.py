"""FedLoom: federated learning on data that differs from client to client.

>>> import fedloom
>>> fedloom.RunConfig(method="fedprox(mu=0.1)").rounds
50
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedloom.version import __version__

if TYPE_CHECKING:
    from fedloom.api import compare, report, run
    from fedloom.config import RunConfig
    from fedloom.data import Dataset, load
    from fedloom.method import Method
    from fedloom.partition import Partition
    from fedloom.server.compare import Comparison
    from fedloom.server.run import RunResult

_HOMES = {
    "Comparison": "fedloom.server.compare",
    "Dataset": "fedloom.data",
    "Method": "fedloom.method",
    "Partition": "fedloom.partition",
    "RunConfig": "fedloom.config",
    "RunResult": "fedloom.server.run",
    "compare": "fedloom.api",
    "load": "fedloom.data",
    "report": "fedloom.api",
    "run": "fedloom.api",
}

__all__ = [
    "Comparison",
    "Dataset",
    "Method",
    "Partition",
    "RunConfig",
    "RunResult",
    "__version__",
    "compare",
    "load",
    "report",
    "run",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when first used, so that the command line starts quickly."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
