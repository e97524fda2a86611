"""Raw examples in memory: embedded sets, the benchmark's sets by name, and files of one's own."""

from fedloom.data.dataset import Dataset
from fedloom.data.inspection import Inspection, inspect
from fedloom.data.loading import load, names
from fedloom.data.options import Options

__all__ = ["Dataset", "Inspection", "Options", "inspect", "load", "names"]
