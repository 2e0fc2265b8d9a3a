"""What commands say: tables, JSON and errors, the same way everywhere. Control characters are shown, not obeyed."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from stream_sort.errors import InvalidInput, SettingsError, StreamSortError
from stream_sort.formats import terminal_text
from stream_sort.formats.json_text import dumps
from stream_sort.formats.terminal_text import visible_json
from stream_sort.model.gap_policy import GapPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from rich.console import Console

FAILED, BAD_USAGE, INTERRUPTED = 1, 2, 130
# What a shell says of a program whose reader went away, as with `| head`.
UNREAD = 141
# A pipe has no width: nothing is folded there, a line is a row. Tables are fitted before they are printed.
ANY_WIDTH = 100_000
# Whether the command that runs was given --wide.
WIDE: ContextVar[bool] = ContextVar("wide", default=False)
visible = terminal_text.visible
shell_word = terminal_text.shell_word


class Styled(NamedTuple):
    """Text of a table's cell with a style of rich's."""

    text: str
    style: str


Cell = str | int | float | Styled | None


def json_line(value: Any) -> str:
    """Return a value as one line of JSON that a terminal may show."""
    return visible_json(dumps(jsonable(value)))


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    text = json.dumps(json.loads(dumps(jsonable(value))), indent=2, ensure_ascii=False)
    typer.echo("\n".join(map(visible_json, text.split("\n"))))


def jsonable(value: Any) -> Any:
    """Return values of ours as JSON has them: a range as {"from", "through"}, a dataclass as its fields."""
    match value:
        case GapPolicy():
            return str(value)
        case range():
            return {"from": value.start, "through": value.stop - 1}
        case dict():
            return {str(name): jsonable(one) for name, one in value.items()}
        case list() | tuple():
            return [jsonable(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    return value


def say(text: str) -> None:
    """Print one line of what was asked for."""
    typer.echo(visible(text))


def answer(facts: Any, *lines: str, as_json: bool) -> None:
    """Print what was asked for: as JSON, for programs, or in so many lines."""
    if as_json:
        print_json(facts)
        return
    for line in lines:
        say(line)


def tell(text: str) -> None:
    """Print one line beside it, on stderr: progress, warnings, what will be done."""
    typer.echo(visible(text), err=True)


def print_error(text: str) -> None:
    """Print the one line of an error."""
    tell(f"stream-sort: {' '.join(text.split())}")


def confirm(text: str, yes: bool) -> None:  # noqa: FBT001  # the value of --yes
    """Say what will be done and ask; ends the command if the answer is no, or nobody answers."""
    if yes:
        tell(text)
        return
    try:
        if typer.confirm(f"{visible(text)}\nGo on?", err=True):
            return
    except typer.Abort as abort:
        typer.echo("", err=True)
        # The same for Ctrl-C and for the end of stdin; only the cause tells.
        if isinstance(abort.__context__, KeyboardInterrupt):
            print_error("nothing was changed")
            raise typer.Exit(INTERRUPTED) from None
    print_error("nothing was changed; --yes goes on without asking")
    raise typer.Exit(FAILED)


@contextmanager
def plain_errors(interrupted: str = "") -> Iterator[None]:
    """Make an error one line on stderr and exit code 1, 2 if what was given cannot be used; Ctrl-C is 130.

    `interrupted` is said on Ctrl-C.
    """
    if sys.stdout is None:
        print_error("stdout is closed; send it to /dev/null, if nobody is to see what this says")
        raise typer.Exit(FAILED)
    try:
        yield
    except StreamSortError as error:
        print_error(str(error))
        raise typer.Exit(BAD_USAGE if _is_bad_usage(error) else FAILED) from None
    except BrokenPipeError:
        # Whoever read it has seen enough. Not typer's own end, which is 1: that is a failure.
        _silence_stdout()
        raise typer.Exit(UNREAD) from None
    except OSError as error:
        fail_to_write(error)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        typer.echo(interrupted, err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        # Known by its module, so that nothing of AWS is loaded for it.
        if not type(error).__module__.startswith("botocore"):
            raise
        print_error(f"AWS: {error}")
        raise typer.Exit(FAILED) from None


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Raise KeyboardInterrupt at the end of the block if Ctrl-C came within it. A second Ctrl-C raises at once."""
    if current_thread() is not main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        # Python handles signals there only; and who ignores Ctrl-C is to ignore it on.
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if came:
            signal.default_int_handler(number, frame)
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def fail_to_write(error: OSError) -> None:
    """Print the one line of a file that cannot be used, or of output that nobody takes."""
    told = error.strerror or str(error)
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        _silence_stdout()
    print_error(f"{error.filename}: {told}" if error.filename else f"{told}; can its output be written?")


def _silence_stdout() -> None:
    """Silence stdout, or Python tries again at its end to write what nobody takes, and complains."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_bad_usage(error: StreamSortError) -> bool:
    """Return True if it was given, and can be given otherwise; what is not installed was not."""
    return isinstance(error, InvalidInput | SettingsError) and not isinstance(error.__context__, ImportError)


def console(*, stderr: bool = False) -> Console:
    """Return where tables go: colour only on a terminal and without NO_COLOR, which rich sees to."""
    from rich.console import Console as RichConsole  # noqa: PLC0415  # as all of rich: only who prints a table pays

    class Console(RichConsole):
        def on_broken_pipe(self) -> None:
            """Leave it to plain_errors: rich would end with 1."""
            raise BrokenPipeError

    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream is not None and stream.isatty()
    return Console(highlight=False, stderr=stderr, width=None if is_terminal and not WIDE.get() else ANY_WIDTH)
