"""The pages name everything there is, so that a new part can't be left out of them."""

import dataclasses

import pytest

from fedloom import data, methods, models, partition, presets
from fedloom.clients import sampler
from fedloom.config import RunConfig
from fedloom.data.options import Options
from fedloom.partition import registry
from fedloom.server import schedule
from tests.docs.pages import PAGES, ROOT

DOCS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}


def words(names, page):
    """Those of the names that the page doesn't have between backticks."""
    return [name for name in names if f"`{name}" not in DOCS[page]]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("methods.md", methods.names),
        ("partitions.md", partition.names),
        ("data.md", data.names),
        ("models.md", models.names),
        ("engine.md", sampler.names),
        ("engine.md", schedule.names),
        ("reproducing-niid-bench.md", presets.names),
        ("README.md", methods.names),
        ("README.md", partition.names),
        ("README.md", data.names),
        ("README.md", models.names),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__module__,
)
def test_a_page_names_everything_of_its_kind(page, found):
    assert not words(found(), page)


@pytest.mark.parametrize("name", sorted(methods.names()))
def test_every_option_of_a_method_is_explained(name):
    options = [field.name for field in dataclasses.fields(methods.find(name))]
    assert not words(options, "methods.md")


@pytest.mark.parametrize("name", registry.known())
def test_every_option_of_a_partition_is_explained(name):
    options = [field.name for field in dataclasses.fields(registry.find(name))]
    assert not words(options, "partitions.md")


def test_every_option_of_own_data_is_explained():
    known = [field.name for field in dataclasses.fields(Options) if field.name != "seed"]
    assert not words(known, "data.md")


def test_every_setting_is_explained_on_some_page():
    text = "\n".join(DOCS.values())
    assert not [name for name in RunConfig.model_fields if f"`{name}" not in text]


def test_every_example_is_named_in_the_readme():
    scripts = [path.name for path in (ROOT / "examples").glob("*.py")]
    assert scripts
    assert not [name for name in scripts if name not in DOCS["README.md"]]
