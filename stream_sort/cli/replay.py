"""`stream-sort backfill | audit | archive`: the jobs of `spark/`, with the very same options."""

from __future__ import annotations

import signal
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from stream_sort.aws.accounts import AwsPlace, find_stack
from stream_sort.cli.output import BAD_USAGE, confirm, print_error

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

    from stream_sort.replay.engine.places import Nearby

# The jobs read their options themselves, so that `spark-submit spark/backfill.py` and the command are the same.
ALL_TO_THE_JOB = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
EXTRA = {"pyspark", "pyarrow"}
# Which module has it depends on the version of typer: some bring a click of their own.
_CLICK = TyperCommand.__base__.__module__.rpartition(".")[0]
ITEM: Any = import_module(f"{_CLICK}.shell_completion").CompletionItem


class JobCommand(TyperCommand):
    """A command whose options the job knows; a shell completes them none the less."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the job's options that begin so."""
        del ctx
        actions = _parser(str(self.name))._actions  # noqa: SLF001  # no other
        options = [option for action in actions for option in action.option_strings]
        return [ITEM(option) for option in options if option.startswith(incomplete or "--")]


def add_commands(app: typer.Typer) -> None:
    """Make the three jobs commands of the command line."""
    for job, told in (
        ("backfill", "Replay ordered ranges into files, tables or sinks; resumable. Needs the extra spark."),
        ("audit", "Prove per queue that nothing is missing or doubled. Needs the extra spark."),
        ("archive", "Write released history to ordered Parquet segments. Needs the extra spark."),
    ):
        command = app.command(job, cls=JobCommand, help=told, context_settings=ALL_TO_THE_JOB, add_help_option=False)
        command(_command(job))


def _command(job: str) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        try:
            main = import_module(f"stream_sort.replay.{job}.job").main
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in EXTRA:
                raise
            install = "pip install '.[cli,spark]' in its folder, or make setup there"
            print_error(f"{job} needs Spark: {install}; and Java 17")
            if not {"--help", "-h"}.isdisjoint(context.args):
                typer.echo(_parser(job).format_help(), nl=False)
                raise typer.Exit from None
            raise typer.Exit(BAD_USAGE) from None
        # A backfill changes nothing that is there, and has nothing to ask.
        asks = () if job == "backfill" else (ask,)
        raise typer.Exit(main(context.args, find_nearby, *asks))

    return run


def _parser(job: str) -> ArgumentParser:
    """Return what reads the job's options; it needs no Spark."""
    from stream_sort.replay.engine.options import JobParser  # noqa: PLC0415  # as all imports of commands

    return JobParser(job)


def ask(text: str, yes: bool) -> None:  # noqa: FBT001  # as confirm has it
    """As every command does. A job says of Ctrl-C that it stops; here nothing has begun."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        confirm(text, yes)
    finally:
        signal.signal(signal.SIGINT, before)


def find_nearby() -> Nearby | None:
    """Return the local stack, if it is up."""
    from stream_sort.replay.engine.places import Nearby  # noqa: PLC0415  # as all imports of commands

    stack, place = find_stack(None, AwsPlace(), may_be_local=True)
    return Nearby(stack, place.region, place.endpoint_url, place.key) if stack.outputs else None
