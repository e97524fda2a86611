"""One notation for a thing with options: `name` or `name(key=value, ...)`.

Partitions, methods, models, samplers and schedules are all written this way, on the command line,
in a configuration file and in Python.
"""

import ast
from dataclasses import dataclass, field
from typing import Any

from fedloom.errors import ConfigError


@dataclass(frozen=True)
class Spec:
    """A name and its options, in the order given."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if not self.options:
            return self.name
        inner = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"{self.name}({inner})"


def parse(text: "str | Spec", what: str = "specification") -> Spec:
    """Read `name` or `name(key=value, ...)`; values are literals, bare words count as text.

    Case, `-` and `_` make no difference in names; dotted paths are kept as they are.

    >>> parse("label_dirichlet(alpha=0.5, min_size=1)")
    Spec(name='label_dirichlet', options={'alpha': 0.5, 'min_size': 1})
    >>> parse("FedProx(mu=1e-3)").options
    {'mu': 0.001}

    Raises ConfigError for anything else.
    """
    if isinstance(text, Spec):
        return text
    name, bracket, rest = str(text).strip().partition("(")
    name = name.strip()
    if ":" not in name and "." not in name:  # a dotted path of the user's own keeps its case
        name = name.lower().replace("-", "_")
    if not name:
        raise ConfigError(f"{what} is empty; write name or name(key=value, ...)")
    if not bracket:
        return Spec(name)
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        assert isinstance(call, ast.Call)
    except (SyntaxError, AssertionError, ValueError):
        raise ConfigError(f"can't read {what} {text!r}; write name(key=value, ...)") from None
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise ConfigError(f"{what} {text!r}: name every option, as in {name}(key=value)")
    options: dict[str, Any] = {}
    for keyword in call.keywords:
        assert keyword.arg is not None
        if keyword.arg in options:
            raise ConfigError(f"{what} {text!r}: option {keyword.arg!r} is given twice")
        options[keyword.arg] = _value(keyword.value, f"{what} {text!r}")
    return Spec(name, options)


def _value(node: ast.expr, where: str) -> Any:
    if isinstance(node, ast.Name):
        return {"true": True, "false": False, "none": None}.get(node.id.lower(), node.id)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise ConfigError(
            f"{where}: {ast.unparse(node)!r} is not a number, text, list, true or false"
        ) from None
