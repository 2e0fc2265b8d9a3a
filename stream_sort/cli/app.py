"""The `stream-sort` command: options and help. What a command does is imported when it runs."""

from __future__ import annotations

from typing import Annotated

try:
    import typer
except ImportError:
    raise SystemExit("stream-sort: the command line is an extra: pip install '.[cli]' in its folder") from None

from stream_sort.cli import local, replay

app = typer.Typer(
    help="Store messages as they come, release every queue in order.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(local.app, name="local")
replay.add_jobs(app)


def _show_version(wanted: bool) -> None:  # noqa: FBT001  # typer calls it with the option's value
    if wanted:
        from stream_sort import __version__  # noqa: PLC0415  # as all imports of commands

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Store messages as they come, release every queue in order."""


@app.command()
def demo(
    messages: Annotated[int, typer.Option(min=100, max=100_000, help="How many messages to send.")] = 2_000,
    queues: Annotated[int, typer.Option(min=1, max=12, help="Over how many queues.")] = 8,
    seed: Annotated[int, typer.Option(help="Another seed is another shuffle.")] = 1,
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack up; `stream-sort local down` ends it.")] = False,
) -> None:
    """Deploy the app to a local AWS, shuffle messages through it and watch them come out in order."""
    from stream_sort.cli.demo.play import run  # noqa: PLC0415  # loads rich, later boto3
    from stream_sort.cli.demo.traffic import make_traffic  # noqa: PLC0415

    raise typer.Exit(run(make_traffic(messages, queues, seed), keep=keep))


def main() -> None:
    """Run the command line."""
    app(prog_name="stream-sort")
