"""The `stream-sort` command: what all of it shares. Each group of commands is loaded when it is called."""

from __future__ import annotations

from typing import Annotated

try:
    import typer
except ImportError:
    raise SystemExit("stream-sort: the command line is an extra: pip install '.[cli]' in its folder") from None

from stream_sort.cli.lazy_group import LazyGroup

app = typer.Typer(
    cls=LazyGroup,
    help="Store messages as they come, release every queue in order.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="stream-sort")
    except OSError as error:
        # Of help, which no command prints.
        from stream_sort.cli.output import FAILED, fail_to_write  # noqa: PLC0415  # --help has no use for it

        fail_to_write(error)
        raise SystemExit(FAILED) from None
