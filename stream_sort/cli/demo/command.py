"""`stream-sort demo`: its options. What it does is loaded when it runs."""

from __future__ import annotations

from typing import Annotated

import typer


def add_commands(app: typer.Typer) -> None:
    """Make it a command of the command line."""
    app.command()(demo)


def demo(
    messages: Annotated[int, typer.Option(min=100, max=100_000, help="How many messages to send.")] = 2_000,
    queues: Annotated[int, typer.Option(min=1, max=12, help="Over how many queues.")] = 8,
    seed: Annotated[int, typer.Option(help="Another seed is another shuffle.")] = 1,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack up; `stream-sort local down` ends it.")] = False,
) -> None:
    """Deploy the app to a local AWS, shuffle messages through it and watch them come out in order.

    Example: stream-sort demo --messages 500 --queues 4
    """
    from stream_sort.cli.demo.play import run  # noqa: PLC0415  # loads rich, later boto3
    from stream_sort.cli.demo.traffic import make_traffic  # noqa: PLC0415

    raise typer.Exit(run(make_traffic(messages, queues, seed), keep=keep))
