"""`stream-sort demo`: its options. What it does is loaded when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from stream_sort.cli.arguments import Json
from stream_sort.cli.output import FAILED, jsonable, plain_errors, print_json

STOPPED, GONE = "Stopped by Ctrl-C", "; the local AWS is gone, nothing is left behind."


def demo(
    messages: Annotated[int, typer.Option(min=100, max=100_000, help="How many messages to send.")] = 2_000,
    queues: Annotated[int, typer.Option(min=1, max=12, help="Over how many queues.")] = 8,
    seed: Annotated[int, typer.Option(help="The seed of the shuffle.")] = 1,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack up; `stream-sort local down` ends it.")] = False,
    as_json: Json = False,
) -> None:
    """Deploy the app to a local AWS, shuffle messages through it and watch them come out in order.

    Example: stream-sort demo --messages 300 --queues 3 --seed 5
    """
    from rich.console import Console  # noqa: PLC0415  # as all imports of commands

    from stream_sort.cli.demo.play import run  # noqa: PLC0415  # loads boto3
    from stream_sort.cli.demo.traffic import make_traffic  # noqa: PLC0415
    from stream_sort.cli.demo.view import View  # noqa: PLC0415

    with plain_errors(STOPPED + ("." if keep else GONE)):
        view = View(Console(highlight=False, stderr=as_json))
        outcome = run(make_traffic(messages, queues, seed), view, keep=keep)
        if as_json:
            print_json({"good": outcome.good, **jsonable(outcome)})
        raise typer.Exit(0 if outcome.good else FAILED)
