"""What to type next: commands of `local` as a shell takes them, and what became of a stack that does not answer."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from stream_sort.errors import LocalStackFailed
from stream_sort.formats.terminal_text import shell_word
from stream_sort.program import program

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort.local.stack import LocalStack


def refuse_dead_stack() -> None:
    """Raise LocalStackFailed if there is a local stack, and its AWS died or does not answer."""
    from stream_sort.local.stack import LocalStack  # noqa: PLC0415  # as all imports of commands

    try:
        stack = LocalStack.known()
    except LocalStackFailed:
        # Not in a checkout: then there is none.
        return
    if stack is not None:
        raise LocalStackFailed(how_it_is(stack, None))


def how_it_is(stack: LocalStack, home: Path | None) -> str:
    """Say what became of a stack that does not answer, and what to do."""
    again = f"start it again with: {local_command('up', home)}"
    death = stack.death
    if death is None:
        return f"the local stack in {stack.home} runs, and does not answer; {again}"
    logged = f"What it logged: {local_command('logs', home)} (look first: up begins with empty logs)"
    return f"the local stack in {stack.home} {death}, and what was stored is gone. {logged}; {again}"


def local_command(word: str, home: Path | None) -> str:
    """A command of `local` as the user can type it, on the stack of a folder: another one is another stack's."""
    from stream_sort.local.stack import default_home  # noqa: PLC0415  # as all imports of commands

    with suppress(LocalStackFailed):
        # Outside of a checkout there is no folder that goes without saying.
        home = None if home is None or home.absolute() == default_home() else home
    where = [] if home is None else ["--home", shell_word(str(home))]
    return " ".join([program(), "local", word, *where])
