"""`stream-sort backfill | audit | archive`: the jobs of `spark/`, with the very same options."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

# The jobs read their options themselves, so that `spark-submit spark/backfill.py` and the command are the same.
ALL_TO_THE_JOB = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add_commands(app: typer.Typer) -> None:
    """Make the three jobs commands of the command line."""
    for job, told in (
        ("backfill", "Replay ordered ranges into files, tables or sinks; resumable. Needs the extra spark."),
        ("audit", "Prove per queue that nothing is missing or doubled. Needs the extra spark."),
        ("archive", "Write released history to ordered Parquet segments. Needs the extra spark."),
    ):
        app.command(job, help=told, context_settings=ALL_TO_THE_JOB, add_help_option=False)(_command(job))


def _command(job: str) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        try:
            main = import_module(f"stream_sort.replay.{job}.job").main
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in {"pyspark", "pyarrow"}:
                raise
            typer.echo(f"stream-sort: {job} needs Spark: pip install 'stream-sort[spark]', and Java 17", err=True)
            raise typer.Exit(2) from None
        raise typer.Exit(main(context.args))

    return run
