"""`stream-sort local`: the whole app on this machine. Options and what is printed; the work is in stream_sort.local."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.core.json_text import loads
from stream_sort.errors import InvalidInput, LocalStackFailed, StreamSortError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.local.stack import LocalStack

INTERRUPTED = 130
POLL = 1.0

app = typer.Typer(help="The whole app on this machine: a local AWS, the template, the functions.", no_args_is_help=True)

Home = Annotated[
    Path | None, typer.Option(help="The folder of the local stack; .stream-sort in the checkout if not given.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Step = Annotated[str, typer.Argument(metavar="FUNCTION", help="enqueue, advance, process or sweep.")]


@app.command()
def up(  # noqa: PLR0913  # each is an option
    *,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Where to listen; else a free port.")] = None,
    handler: Annotated[str | None, typer.Option(metavar="FILE:FUNCTION", help="Your own handler for process.")] = None,
    sink: Annotated[str | None, typer.Option(help="Where process puts messages, as in template.yaml.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Another parameter of template.yaml.")
    ] = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Start a local AWS, build the app and deploy it there; once more deploys what has changed."""
    with _plain_errors("Stopped by Ctrl-C; what was started is gone again."):
        from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

        parameters = _parameters(settings or [])
        if sink is not None:
            parameters["Sink"] = sink
        stack = LocalStack.up(home=home, port=port, handler=handler, parameters=parameters, report=_tell)
        _print_stack(stack, as_json=as_json)


@app.command()
def status(*, home: Home = None, as_json: Json = False) -> None:
    """Show whether it runs, what is in its queues and what to call; exit code 1 if it does not run."""
    with _plain_errors():
        from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

        if as_json and LocalStack.find(home) is None:
            typer.echo(json.dumps({"running": False}))
            raise typer.Exit(1)
        _print_stack(_running(home), as_json=as_json)


@app.command()
def logs(
    function: Annotated[str, typer.Argument(metavar="[FUNCTION]", help="One function; else all of them.")] = "",
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show what the functions wrote."""
    with _plain_errors(""):
        from stream_sort.local.stack import STEPS  # noqa: PLC0415  # as all imports of commands

        stack = _running(home)
        shown: set[tuple[int, str, str]] = set()
        while True:
            lines = [line for step in ([function] if function else STEPS) for line in stack.logs(step)]
            for line in sorted((line for line in lines if line not in shown), key=lambda line: line.at):
                typer.echo(json.dumps(line._asdict()) if as_json else f"{_clock(line.at)} {line.step:8} {line.text}")
            shown.update(lines)
            if not follow:
                return
            time.sleep(POLL)


@app.command()
def invoke(
    function: Step,
    event: Annotated[str, typer.Argument(help="JSON, or a file with it, such as those in events/; - for stdin.")],
    *,
    home: Home = None,
) -> None:
    """Run a function with an event, and print what it answers."""
    with _plain_errors():
        from stream_sort.local.samples import with_names_of  # noqa: PLC0415  # as all imports of commands

        given = read_event(event)
        stack = _running(home)
        typer.echo(json.dumps(stack.invoke(function, with_names_of(stack.outputs, given)), indent=2))


@app.command()
def down(*, home: Home = None) -> None:
    """End the local AWS with everything in it."""
    with _plain_errors():
        from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

        _tell("down; nothing is left" if LocalStack.take_down(home) else "there is no local stack")


@app.command()
def reset(*, home: Home = None, as_json: Json = False) -> None:
    """Throw away every message and all state, and deploy the app anew as it was."""
    with _plain_errors("Stopped by Ctrl-C; the local stack is down."):
        from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

        _print_stack(LocalStack.reset(home, _tell), as_json=as_json)


@contextmanager
def _plain_errors(interrupted: str = "Stopped by Ctrl-C.") -> Iterator[None]:
    """An error is one message and exit code 1, never a traceback."""
    try:
        yield
    except StreamSortError as error:
        typer.echo(f"stream-sort: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        if interrupted:
            typer.echo(interrupted, err=True)
        raise typer.Exit(INTERRUPTED) from None


def _tell(text: str) -> None:
    typer.echo(text, err=True)


def _running(home: Path | None) -> LocalStack:
    from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

    stack = LocalStack.find(home)
    if stack is None:
        raise LocalStackFailed(f"no local stack runs; start it with: {_program()} local up")
    return stack


def _print_stack(stack: LocalStack, *, as_json: bool) -> None:
    from stream_sort.local.report import describe, summary  # noqa: PLC0415  # as all imports of commands

    if as_json:
        typer.echo(json.dumps(describe(stack), indent=2))
    else:
        typer.echo(summary(stack, _program()))


def _parameters(settings: list[str]) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, _ in pairs:
        if not (name.isalnum() and equals):
            raise LocalStackFailed(f"--set {name + equals!r}: must be NAME=VALUE, a parameter of template.yaml")
    return {name: value for name, _, value in pairs}


def read_event(text: str) -> Any:
    """The event of an argument: JSON, a file with it, or - for stdin.

    Read strictly: of a field given twice, Lambda's own parser would drop one and say nothing.
    """
    if not text.strip():
        raise LocalStackFailed("no event: give JSON, or a file with it, such as events/enqueue_direct_one.json")
    source = "the event"
    try:
        if text == "-":
            text = sys.stdin.read()
        elif not text.lstrip().startswith(("{", "[", '"')):
            source = text
            text = Path(text).read_text(encoding="utf-8")
        return loads(text)
    except OSError as error:
        raise LocalStackFailed(f"{source}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LocalStackFailed(f"{source} is not text: {error}") from error
    except InvalidInput as error:
        raise LocalStackFailed(f"{source}: {error}") from error


def _program() -> str:
    """The command as the user can type it: by its path if it lies below this folder."""
    program = Path(sys.argv[0]).absolute()
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else "stream-sort"


def _clock(milliseconds: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(milliseconds / 1000))
