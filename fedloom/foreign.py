"""Things of the user's own, found by their dotted path."""

import importlib
import os
import sys
from typing import Any

from fedloom.errors import ConfigError, nearest


def load(path: str, what: str) -> Any:
    """What `package.module:Class` (or `package.module.Class`) names; `what` is it, for messages.

    The current directory is importable.
    Raises ConfigError for a path that leads nowhere.
    """
    module_name, _, name = path.rpartition(":" if ":" in path else ".")
    if not module_name or not name:
        raise ConfigError(f"{what} {path!r}: write package.module:Class")
    here = os.getcwd()
    if here not in sys.path:
        # Last, so that a file here can't take the place of an installed module; it stays, because
        # worker processes find the class again by its module.
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigError(
            f"can't import {module_name!r} for {what} {path}: {type(error).__name__}: {error}; "
            "run from the folder that holds it, or install it"
        ) from error
    if not hasattr(module, name):
        public = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise ConfigError(f"{module_name} has no {name!r}; {nearest(name, public)}")
    return getattr(module, name)
