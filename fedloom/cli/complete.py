"""Shell completion: names found by looking into the folders, without importing what is heavy."""

from collections.abc import Callable
from pathlib import Path

from fedloom.presets import names as preset_names

HERE = Path(__file__).resolve().parent.parent

Completer = Callable[[str], list[str]]


def words(choices: tuple[str, ...]) -> Completer:
    """Complete one of a few words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in choices if word.startswith(incomplete.lower())]

    return complete


def modules(*folders: str) -> tuple[str, ...]:
    """The names of the modules in the first of these folders that there is."""
    for folder in folders:
        if (HERE / folder).is_dir():
            files = (HERE / folder).glob("*.py")
            return tuple(sorted(file.stem for file in files if not file.stem.startswith("_")))
    return ()


def _data(incomplete: str) -> list[str]:
    from fedloom import data

    return [name for name in data.names() if name.startswith(incomplete.lower())]


def _list_of_methods(incomplete: str) -> list[str]:
    """Complete the last name of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [before + comma + name for name in modules("methods") if name.startswith(last.lower())]


FOR: dict[str, Completer] = {
    "data": _data,
    "method": words(modules("methods")),
    "methods": _list_of_methods,
    "model": words(modules("models/nets", "models")),
    "partition": words(modules("partition/strategies")),
    "preset": words(tuple(preset_names())),
}
