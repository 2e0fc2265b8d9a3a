"""`stream-sort local`: the whole app on this machine. Options and what is printed; the work is in stream_sort.local."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from stream_sort.cli import local_logs
from stream_sort.cli.arguments import Json, Yes, duration_of
from stream_sort.cli.output import confirm, plain_errors, print_json, tell
from stream_sort.errors import InvalidInput, LocalStackFailed
from stream_sort.formats.json_text import loads
from stream_sort.local.parameters import plain_values
from stream_sort.local.project import has_app, with_names_of
from stream_sort.local.readable_logs import STEPS
from stream_sort.local.record import StackRecord
from stream_sort.local.report import describe, how_it_is, local_command, summary
from stream_sort.local.stack import LocalStack, default_home
from stream_sort.local.watch import watch_handler, watched_file

STOPPED = "Stopped by Ctrl-C."
START_STOPPED = "Stopped by Ctrl-C; what was started was removed."
WATCH_STOPPED = "Stopped by Ctrl-C; the local stack stays up."
CHANGE_STOPPED = "Stopped by Ctrl-C; the local stack stays up, with all that is stored, and may be changed in part."

app = typer.Typer(help="The whole app on this machine: a local AWS, the template, the functions.", no_args_is_help=True)

Home = Annotated[
    Path | None,
    typer.Option(help="The folder of the local stack. Default: .stream-sort in the checkout, or in your home."),
]
Step = Annotated[str, typer.Argument(metavar="FUNCTION", help="enqueue, advance, process or sweep.")]


@app.command()
def up(  # noqa: PLR0913  # each is an option
    *,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="The port to listen on, else a free one.")] = None,
    handler: Annotated[str | None, typer.Option(metavar="FILE:FUNCTION", help="Your own handler for process.")] = None,
    sink: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A sink, in place of a handler: log, sqs-fifo, kinesis, eventbridge, sns-fifo, lambda.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another parameter of template.yaml; NAME= is its default."),
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay, and swap in your handler's changes.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Start a local AWS, build the app and deploy it there.

    Once more deploys what has changed, and keeps the parameters and the handler that it has, except those that are
    given; --sink NAME puts a sink in the place of the handler. What it prints as parameters is read from the stack.

    Example: stream-sort local up --set MaxAttempts=3
    """
    with plain_errors(STOPPED):
        stopped = START_STOPPED if LocalStack.find(home) is None else CHANGE_STOPPED
        if watch and handler is None and (sink is not None or _has_no_handler(LocalStack.known(home))):
            raise InvalidInput("there is no handler to watch; name one: --handler FILE:FUNCTION")
    with plain_errors(stopped):
        parameters = _parameters(settings or [])
        if sink is not None:
            parameters["Sink"] = sink
        stack = LocalStack.up(home=home, port=port, handler=handler, parameters=parameters, report=tell)
        _print_stack(stack, home, as_json=as_json)
    if watch:
        with plain_errors(WATCH_STOPPED):
            _watch(stack, home)


@app.command()
def status(*, home: Home = None, as_json: Json = False) -> None:
    """Show whether it runs, and what to call; if it died, when and how.

    Exit code 1 if it does not run.

    Example: stream-sort local status
    """
    with plain_errors(STOPPED):
        stack = LocalStack.known(home)
        if as_json and (stack is None or not stack.await_answer(lambda _: None)):
            death = stack.death if stack else None
            print_json({"running": False} | ({"died": _utc(death.at), "reason": death.reason} if death else {}))
            raise typer.Exit(1)
        _print_stack(_running(home), home, as_json=as_json)


@app.command()
def logs(  # noqa: PLR0913  # each is an option
    function: Annotated[str, typer.Argument(metavar="[FUNCTION]", help="One function; all by default.")] = "",
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    since: Annotated[str | None, typer.Option(metavar="DURATION", help="Only lines of the last 30s, 5m, 1h.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Show every line as it was written, with metrics.")] = False,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show what the functions wrote, a line an event.

    > is your own, ! an error, ? a warning. Also after the local AWS died. --raw and --json show every line.

    Example: stream-sort local logs enqueue
    """
    with plain_errors():
        begin = 0 if since is None else int((time.time() - duration_of(since, "--since")) * 1_000)
        stack = LocalStack.known(home) or _running(home)
        show = local_logs.show_raw if raw else local_logs.show_readable
        steps = [function] if function else STEPS
        printer = local_logs.LogPrinter(stack, steps, local_logs.show_json if as_json else show, begin)
        if follow:
            printer.follow()
        printer.print_new()
        if not stack.is_up:
            tell(how_it_is(stack, home))
            raise typer.Exit(int(follow))


@app.command()
def invoke(
    function: Step,
    event: Annotated[str, typer.Argument(help="JSON, or a file with it, such as those in events/; - for stdin.")],
    *,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Run a function with an event, and print its answer, as JSON.

    Example: stream-sort local invoke enqueue '{"queue": "ada", "seq": 0}'
    """
    with plain_errors(STOPPED):
        del as_json
        given = read_event(event)
        stack = _running(home)
        print_json(stack.invoke(function, with_names_of(stack.outputs, given)))


@app.command()
def down(*, home: Home = None, as_json: Json = False) -> None:
    """End the local AWS with everything in it.

    Example: stream-sort local down
    """
    with plain_errors(STOPPED):
        was_there = LocalStack.take_down(home, tell)
        tell("down; nothing is left" if was_there else "there is no local stack")
        if as_json:
            print_json({"running": False, "was_there": was_there})


@app.command()
def reset(*, home: Home = None, yes: Yes = False, as_json: Json = False) -> None:
    """Throw away all messages and state, and deploy the app anew.

    Example: stream-sort local reset --yes
    """
    with plain_errors(STOPPED):
        folder = home or default_home()
        if StackRecord.load(folder.absolute()) is not None:
            confirm(f"Throw away every message and all state of the local stack in {folder}, and deploy it anew.", yes)
    with plain_errors("Stopped by Ctrl-C; the local stack is down."):
        _print_stack(LocalStack.reset(home, tell), home, as_json=as_json)


def _running(home: Path | None) -> LocalStack:
    stack = LocalStack.known(home)
    if stack is not None and not stack.await_answer(tell):
        raise LocalStackFailed(how_it_is(stack, home))
    if stack is None:
        where = "" if has_app() else " in a checkout of stream_sort"
        raise LocalStackFailed(f"no local stack runs; start it{where} with: {local_command('up', home)}")
    return stack


def _has_no_handler(stack: LocalStack | None) -> bool:
    return stack is None or stack.record.handler is None


def _watch(stack: LocalStack, home: Path | None) -> None:
    tell(f"watching {watched_file(stack).path}; Ctrl-C ends that, and leaves the stack up")
    try:
        watch_handler(lambda: LocalStack.known(home), tell)
    except LocalStackFailed:
        _running(home)
        raise


def _print_stack(stack: LocalStack, home: Path | None, *, as_json: bool) -> None:
    if as_json:
        print_json(describe(stack))
    else:
        typer.echo(summary(stack, partial(local_command, home=home)))


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _parameters(settings: list[str]) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, _ in pairs:
        if not (name.isalnum() and equals):
            raise InvalidInput(f"--set {name + equals!r}: must be NAME=VALUE, a parameter of template.yaml")
    return plain_values({name: value for name, _, value in pairs})


def read_event(text: str) -> Any:
    """Return the event of an argument: JSON, a file with it, or - for stdin.

    Read strictly: of a field given twice, Lambda's own parser would drop one and say nothing.
    """
    if not text.strip():
        raise InvalidInput("no event: give JSON, or a file with it, such as events/enqueue_direct_one.json")
    source = "the event"
    try:
        if text == "-":
            text = sys.stdin.read()
        elif not text.lstrip().startswith(("{", "[", '"')):
            source = text
            text = Path(text).read_text(encoding="utf-8")
        return loads(text)
    except OSError as error:
        raise InvalidInput(f"{source}: {error.strerror}") from error
    except ValueError as error:
        # Bytes that are no text, or a name that no file can have.
        raise InvalidInput(f"{source} is not text: {error}") from error
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}") from error
