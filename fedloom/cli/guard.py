"""What ends a command: errors become one message and an exit code, signals a prompt, clean stop."""

import contextlib
import functools
import inspect
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Annotated, Any, TextIO

import typer

from fedloom.cli.hints import with_flags
from fedloom.errors import FedloomError

PATIENCE = 5.0
"""Seconds during which a second Ctrl-C is ignored, so that stopping can finish."""

INTERRUPTED, TERMINATED, UNEXPECTED = 130, 143, 1


class Terminated(KeyboardInterrupt):
    """SIGTERM; what handles an interrupt handles it alike, but the exit code differs."""


def say(message: str, label: str = "error") -> None:
    """One message on standard error, without markup and unwrapped."""
    sys.stdout.flush()
    line(f"{label}: {message}", sys.stderr)


def line(text: str, stream: TextIO | None = None) -> None:
    """One line as the stream can show it; what its encoding lacks is replaced, not forced on it."""
    target = sys.stdout if stream is None else stream
    encoding = getattr(target, "encoding", None) or "utf-8"
    target.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    target.flush()


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command with `--debug`, exit codes that mean something, and no traceback without it."""

    @functools.wraps(command)
    def wrapper(*args: Any, debug: bool, **kwargs: Any) -> None:
        try:
            with _signals():
                command(*args, **kwargs)
        except Exception as error:
            if not _ours(error):
                raise
            _fail(error, debug)
        except KeyboardInterrupt as stop:
            terminated = isinstance(stop, Terminated)
            say("terminated" if terminated else "interrupted", label="stopped")
            raise typer.Exit(TERMINATED if terminated else INTERRUPTED) from None

    option = typer.Option("--debug", help="Show the full traceback of an error.")
    return with_parameters(
        wrapper, inspect.signature(command), {"debug": (Annotated[bool, option], False)}
    )


def with_parameters(
    wrapper: Callable[..., None],
    signature: inspect.Signature,
    added: dict[str, tuple[Any, Any]],
) -> Callable[..., None]:
    """`wrapper` with a signature that has `added` (name -> type, default) at its end."""
    extra = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in added.items()
    ]
    parameters = [*signature.parameters.values(), *extra]
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    del wrapper.__wrapped__  # type: ignore[attr-defined]
    return wrapper


def _ours(error: Exception) -> bool:
    """Whether the error is for us: the command-line library ends its own ones itself."""
    from_library = isinstance(error, typer.Exit | typer.Abort) or hasattr(error, "format_message")
    return not from_library or isinstance(error, FedloomError)


def _fail(error: Exception, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    if isinstance(error, FedloomError):
        say(with_flags(str(error)))
        raise typer.Exit(error.exit_code) from None
    if isinstance(error, BrokenPipeError):
        raise typer.Exit(UNEXPECTED) from None
    hint = "" if debug else "; repeat the command with --debug for the traceback"
    what = " ".join(str(error).split()) or "no message"
    say(f"unexpected {type(error).__name__}: {what}{hint}")
    raise typer.Exit(UNEXPECTED) from None


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM raise once; more of them within seconds do not cut the stopping off."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last = -PATIENCE

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last < PATIENCE:
            return
        last = time.monotonic()
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
