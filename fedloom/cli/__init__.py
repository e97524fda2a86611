"""The command line: `fedloom run`, `compare`, `report`, `list`, `data` and `partition`."""

from fedloom.cli.app import app, main

__all__ = ["app", "main"]
