"""Who holds which rows: strategies, the finished partition, its skew, its card and its picture."""

from fedloom.partition.card import card
from fedloom.partition.feature import NOISE_RULES, noise_std
from fedloom.partition.heatmap import heatmap
from fedloom.partition.make import confirm, make
from fedloom.partition.matching import match_test, resampled
from fedloom.partition.measure import Skew, measure
from fedloom.partition.naming import client_names
from fedloom.partition.partition import Partition, Rows
from fedloom.partition.registry import names, resolve

__all__ = [
    "NOISE_RULES",
    "Partition",
    "Rows",
    "Skew",
    "card",
    "client_names",
    "confirm",
    "heatmap",
    "make",
    "match_test",
    "measure",
    "names",
    "noise_std",
    "resampled",
    "resolve",
]
