"""What a run leaves behind: its directory, events and environment, and how they are read again."""

from fedloom.record.rundir import RunDir

__all__ = ["RunDir"]
