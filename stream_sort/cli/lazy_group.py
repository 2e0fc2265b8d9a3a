"""Commands that are loaded when they are called: `--help` needs their names and one line of each, and nothing else.

Groups of commands list what they are about when no command is given; a mistake is told with what may have been meant.
"""

from __future__ import annotations

from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAME, BAD_USAGE = "stream-sort", 2
# Its name depends on the version of typer: some bring a click of their own.
UsageError: Any = typer.BadParameter.__base__
CALLED = "stream_sort.called"
ASKS_FOR_HELP = "NoArgsIsHelpError"
LIST, HELP = "list", {"--help"}


class Deferred(NamedTuple):
    """A command of a module under stream_sort.cli, and the line that lists it.

    `attribute` is what the module calls the command, or the group of commands; its own name if empty. A module whose
    commands read their options themselves has `add_commands` instead.
    """

    module: str
    summary: str
    attribute: str = ""


COMMANDS = {
    "put": Deferred("messages", "Put the messages of a file."),
    "read": Deferred("messages", "Print what is released in a queue, in order."),
    "tail": Deferred("messages", "Print messages as they are released."),
    "status": Deferred("status", "Show what every queue is doing, the worst first."),
    "doctor": Deferred("doctor", "Check a stack end to end, and say what to do."),
    "report": Deferred("report", "Write the state of all queues as one HTML page."),
    "explain": Deferred("queues", "Explain why a queue waits, and what would unblock it."),
    "gaps": Deferred("queues", "List the missing seqs of a queue."),
    "skip": Deferred("queues", "Give up on missing seqs: what waits behind them is released."),
    "withdraw": Deferred("kept_aside", "Take messages with a wrong seq out of their slots."),
    "policy": Deferred("queues", "Show or set what happens to a gap that stays."),
    "nudge": Deferred("queues", "Wake the consumers of queues."),
    "advance": Deferred("queues", "Release what is stored and contiguous."),
    "open": Deferred("cursor_rows", "Start a queue at another seq.", "open_queue"),
    "recover": Deferred("cursor_rows", "Restore a lost cursor row."),
    "parked": Deferred("stuck", "Queues on hold for a consumer, because a message failed."),
    "dead": Deferred("stuck", "Messages that a consumer gave up on."),
    "dead-letters": Deferred("dead_letters", "What could not be stored, from any source.", "app"),
    "late": Deferred("kept_aside", "Messages that came after their seqs were skipped."),
    "withdrawn": Deferred("kept_aside", "Messages that were taken out of their slots."),
    "consumers": Deferred("consumers", "Who reads the queues, and how far each is."),
    "trim": Deferred("consumers", "Delete old messages of a queue, for good."),
    "backfill": Deferred("replay", "Replay ordered ranges; resumable. Needs the extra spark."),
    "audit": Deferred("replay", "Prove that nothing is missing or doubled. Needs the extra spark."),
    "archive": Deferred("replay", "Write released history to Parquet. Needs the extra spark."),
    "cost": Deferred("cost", "Estimate what a load will cost."),
    "local": Deferred("local", "The whole app on this machine, on a local AWS.", "app"),
    "demo": Deferred("demo.command", "Watch shuffled messages come out in order, on a local AWS."),
}
GROUPS = ("parked", "dead", "dead-letters", "late", "withdrawn", "consumers", "local")

# So alike are a command and a slip of the finger.
SURE = 0.75


class LazyGroup(TyperGroup):
    """The group of all commands; each is loaded when it is asked for."""

    def make_context(self, *arguments: Any, **named: Any) -> Any:
        """Read the options of the group."""
        with _one_line():
            return super().make_context(*arguments, **named)

    def invoke(self, ctx: Any) -> Any:
        """Read the options of a command and run it."""
        with _one_line(ctx):
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names, in the order in which they are listed."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one command; None if there is none of that name."""
        del ctx
        return load(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command; the error for one that is not there names those that may have been meant."""
        try:
            return note_command(ctx, super().resolve_command(ctx, args))
        except UsageError as error:
            from stream_sort.model.alike import alike  # noqa: PLC0415  # only for a mistake

            error.meant = _quoted(alike(args[0], COMMANDS) or _in_groups(args[0]))
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List all commands without loading them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])


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
        """Find a command; the error for one that is not there names those that may have been meant."""
        try:
            return note_command(ctx, super().resolve_command(ctx, args))
        except UsageError as error:
            from stream_sort.model.alike import alike  # noqa: PLC0415  # only for a mistake

            word, found = args[0], alike(args[0], self.commands)
            # The name of a queue in place of a command may look a little like one: eve and redrive.
            is_sure = bool(alike(word, found, close=SURE))
            error.meant = _quoted(found if is_sure else self._listing(word) or found)
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
        """Return the list of one queue, where a name stands in place of a command."""
        from stream_sort.formats.terminal_text import shell_word  # noqa: PLC0415  # only for a mistake

        takes_names = LIST in self.commands and any(
            parameter.param_type_name == "argument" for parameter in self.commands[LIST].params
        )
        return [f"{self.name} {LIST} {shell_word(word)}"] if takes_names else []


def load(name: str) -> Any:
    """Return a command, as click takes it."""
    module = import_module(f"stream_sort.cli.{COMMANDS[name].module}")
    # No rich in the help: to load it takes longer than all else.
    around = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if hasattr(module, "add_commands"):
        module.add_commands(around)
    elif isinstance(found := getattr(module, COMMANDS[name].attribute or name), typer.Typer):
        around.add_typer(found, name=name, cls=CommandGroup)
    else:
        around.command(name)(found)
    return get_group(around).commands[name]


def note_command(ctx: Any, found: Any) -> Any:
    """Note the command that was found in a group, for what is said of its options; give back what was found."""
    ctx.meta[CALLED] = f"{ctx.command_path} {found[0]}"
    return found


@contextmanager
def _one_line(ctx: Any = None) -> Iterator[None]:
    """Make bad usage one line, as every error, with what may have been meant; and exit code 2."""
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == ASKS_FOR_HELP:
            raise
        from stream_sort.cli.output import print_error  # noqa: PLC0415  # --help has no use for it
        from stream_sort.program import program  # noqa: PLC0415

        # What the parser itself refuses names no command.
        called = NAME if ctx is None else ctx.meta.get(CALLED, NAME)
        command = called if error.ctx is None else error.ctx.command_path
        problem, meant = error.format_message(), getattr(error, "meant", ())
        if options := getattr(error, "possibilities", None):
            # The parser's own suggestions stand in the text that it formats.
            problem, meant = error.message, _options_alike(error.option_name, options)
        print_error(_did_you_mean(problem, meant, program() + command.removeprefix(NAME)))
        raise typer.Exit(BAD_USAGE) from None


def _did_you_mean(problem: str, meant: Iterable[str], help_of: str) -> str:
    """Return what is said of a mistake: the problem, what may have been meant, where to read on."""
    from stream_sort.model.alike import either  # noqa: PLC0415  # only for a mistake

    told = either([*meant])
    problem = problem.rstrip(".")
    return f"{problem}; did you mean {told}? See {help_of} --help" if told else f"{problem}; see {help_of} --help"


def _options_alike(name: str, known: Iterable[str]) -> list[str]:
    """Return the options that look like this one; the dashes that all of them have make none alike."""
    from stream_sort.model.alike import alike  # noqa: PLC0415  # only for a mistake

    names = {option.lstrip("-"): option for option in known}
    return [names[close] for close in alike(name.lstrip("-"), names)]


def _in_groups(word: str) -> list[str]:
    """Return the commands of this name inside groups, such as `parked redrive`."""
    return [f"{name} {word}" for name in GROUPS if word in load(name).commands]


def _quoted(commands: Iterable[str]) -> list[str]:
    """Return commands as they stand in a sentence."""
    return [repr(command) for command in commands]
