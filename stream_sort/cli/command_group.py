"""A group of commands that lists what it is about when no command is given, and knows what may have been meant."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from stream_sort.cli.lazy_group import UsageError, note_command
from stream_sort.cli.output import shell_word
from stream_sort.cli.suggestions import quoted
from stream_sort.model.alike import alike

LIST = "list"
HELP = {"--help"}


class CommandGroup(TyperGroup):
    """Commands under one name. By itself, or with options only, a group that has `list` runs it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"suggest_commands": False})
        if LIST in self.commands:
            self.subcommand_metavar = "[COMMAND] [ARGS]..."

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what is given; without a command it is meant for `list`."""
        if not ctx.resilient_parsing and self._is_for_list(args):
            args = [LIST, *args]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; one that is not there is told with those that may have been meant."""
        try:
            return note_command(ctx, super().resolve_command(ctx, args))
        except UsageError as error:
            error.meant = quoted(alike(args[0], self.commands) or self._listing(args[0]))
            raise

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the group is for, and what it does by itself."""
        super().format_help_text(ctx, formatter)
        if LIST in self.commands:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text("Without a command it lists them, with the options of list.")

    def _is_for_list(self, args: list[str]) -> bool:
        if LIST not in self.commands or not HELP.isdisjoint(args):
            return False
        # An option before a command is a mistake of its own, and told as such.
        return not args or (args[0].startswith("-") and not any(word in self.commands for word in args))

    def _listing(self, word: str) -> list[str]:
        """The list of one queue, where a name stands in place of a command."""
        takes_names = LIST in self.commands and any(
            parameter.param_type_name == "argument" for parameter in self.commands[LIST].params
        )
        return [f"{self.name} {LIST} {shell_word(word)}"] if takes_names else []
