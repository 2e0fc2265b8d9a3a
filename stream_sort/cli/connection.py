"""Where a command looks: the options that all commands share, and the tables and clients they come to.

Loads nothing of AWS before a command asks for it.
"""

from __future__ import annotations

from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stream_sort.aws.accounts import AwsPlace, find_stack, local_hint
from stream_sort.aws.stacks import LOCAL, OUTPUTS, Stack
from stream_sort.cli.arguments import option, with_options
from stream_sort.cli.output import plain_errors, shell_word, tell
from stream_sort.errors import (
    ConsumerNotFound,
    CursorLost,
    InvalidInput,
    QueueNotFound,
    SettingsError,
    StreamSortError,
    TableNotFound,
)
from stream_sort.local.report import await_local_stack, local_command, refuse_dead_stack
from stream_sort.model.consumption import EARLIEST, LATEST
from stream_sort.model.message import MIN_SEQ
from stream_sort.program import program
from stream_sort.settings import PREFIX, Settings, variables

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stream_sort.insight.sources import OwnConsumer, Sources
    from stream_sort.ordered_consumer import OrderedConsumer
    from stream_sort.ports import ControlStores
    from stream_sort.stream_sorter import StreamSorter

DEFAULT_CONSUMER = "process"
# What a variable can name as well.
OF_TABLES = ("items_table", "cursor_table", "control_table", "queue_key", "seq_key", "consumer")
NO_CONTROL = "no control table is named; give --control-table or --stack"


@dataclass(frozen=True)
class Connection:
    """The tables, keys and functions that a command works on. Clients are made when they are needed."""

    settings: Settings
    place: AwsPlace
    control: str | None = None
    consumer_name: str = DEFAULT_CONSUMER
    stack: Stack = field(default_factory=Stack)
    flags: tuple[str, ...] = ()
    # That of the option, which a command may have no use for.
    asked_consumer: str | None = None

    @cached_property
    def sorter(self) -> StreamSorter:
        """Return the sorter on these tables."""
        from stream_sort.stream_sorter import StreamSorter  # noqa: PLC0415  # as all imports of commands

        # Conflicts are counted and told like any other outcome, whatever a program of the user wants.
        settings = asdict(self.settings) | {"on_conflict": "report"}
        return StreamSorter(**settings, client=self.place.dynamodb(self.settings))

    @cached_property
    def sources(self) -> Sources:
        """Return the tables, for reading."""
        return replace(self.sorter.sources(self.control), own=self.own)

    @cached_property
    def control_store(self) -> ControlStores:
        """Return the control table; SettingsError if nothing names it."""
        control = self.sources.control
        if control is None:
            raise SettingsError(NO_CONTROL)
        return control

    @property
    def control_table(self) -> str:
        """Return the name of the control table; SettingsError if nothing names it."""
        if self.control is None:
            raise SettingsError(NO_CONTROL)
        return self.control

    def control_unless(self, no_consumers: bool) -> str | None:  # noqa: FBT001  # it is an option's value
        """Return the control table that must be asked; None if it was said that nobody consumes."""
        if no_consumers and self.control is not None:
            raise InvalidInput(f"--no-consumers, but the control table is {self.control}; leave one of them out")
        if not no_consumers and self.control is None:
            raise SettingsError(f"{NO_CONTROL}, or --no-consumers if nobody consumes")
        return self.control

    def consumer(self, name: str | None = None) -> OrderedConsumer:
        """Return a consumer that can be asked and delivers nothing; that of --consumer if not named."""
        from stream_sort.ordered_consumer import OrderedConsumer  # noqa: PLC0415  # as all imports of commands

        return OrderedConsumer(name or self.consumer_name, sorter=self.sorter, control_table=self.control_table)

    @property
    def own(self) -> OwnConsumer | None:
        """Return the consumer of the stack; None if no stack is known, or it starts with what is yet to come."""
        from stream_sort.insight.sources import OwnConsumer  # noqa: PLC0415  # as all imports of commands

        start = self.stack.parameters.get("Start", EARLIEST)
        if start == LATEST or self.control is None or self.control != self.stack.outputs.get("ControlTable"):
            return None
        logs = f"{local_command('logs', None)} process" if self.place.key else self.command("doctor")
        return OwnConsumer(self.stack.parameters.get("Consumer", DEFAULT_CONSUMER), start, logs)

    def check_names(self) -> None:
        """Raise TableNotFound or ConsumerNotFound for what was named and is not there, and would not be asked for.

        The tables of a stack are there; of others, one slot is read. Who may not read it may go on.
        """
        if self.settings.items_table != self.stack.outputs.get("ItemsTable"):
            try:
                self.sources.items.look("queue", MIN_SEQ - 1, 1)
            except TableNotFound:
                raise
            except StreamSortError:
                pass
        asked, own = self.asked_consumer, self.own
        if asked is None or (own is not None and own.name == asked):
            return
        control = self.sources.control
        if control is None:
            return
        found = control.subscriptions.readable_consumers()
        if asked not in {*found.rows, *found.damaged}:
            raise ConsumerNotFound(asked, [one.name for one in found.active()])

    def client(self, service: str, *, read_timeout: float = 10.0) -> Any:
        """Return a boto3 client where the tables are; it is closed when the command ends."""
        return self.place.client(service, read_timeout=read_timeout)

    def output(self, name: str) -> str:
        """Return an output of the stack, such as ProcessFunction; SettingsError if no stack is known."""
        value = self.stack.outputs.get(name)
        if value is None:
            raise SettingsError(f"the name of {name} is not known; give --stack NAME, which has it as an output")
        return value

    def command(self, *words: str, options: Sequence[str] = ()) -> str:
        """Return a command of ours as it can be typed, with the options that lead to these tables."""
        # What begins with - is taken for an option, unless it stands behind all of them.
        first = next((at for at, word in enumerate(words) if word.startswith("-")), len(words))
        behind = ["--", *words[first:]] if first < len(words) else []
        return " ".join([program(), *map(shell_word, [*words[:first], *options, *self.flags, *behind])])

    def close(self) -> None:
        """Close all clients."""
        self.place.close()


@contextmanager
def leading_here(connection: Connection) -> Iterator[None]:
    """Let an error that names a command name it with the options that lead to these tables."""
    try:
        yield
    except CursorLost as lost:
        again = connection.command("recover", lost.queue)
        raise CursorLost(lost.queue, known_position=lost.known_position, remedy=again) from lost


@contextmanager
def _naming_what_is_alike(connection: Connection) -> Iterator[None]:
    """Let the error for a queue or consumer that is not there name what may be meant; queues from one page of names."""
    try:
        yield
    except QueueNotFound as unknown:
        from stream_sort.model.alike import alike  # noqa: PLC0415  # only for a mistake

        names: Sequence[str] = ()
        with suppress(StreamSortError):
            # What is not there is told, also where nobody may list what is.
            names = connection.sources.cursors.queues().queues
        raise QueueNotFound(unknown.queue, meant=alike(unknown.queue, names), advice=unknown.advice) from unknown
    except ConsumerNotFound as unknown:
        from stream_sort.model.alike import alike  # noqa: PLC0415  # as above

        name, known = unknown.consumer, unknown.known
        raise ConsumerNotFound(name, known, retired=unknown.retired, meant=alike(name, known)) from unknown


def connect(**shared: str | None) -> Connection:
    """Return what the options, the variables, the outputs of a stack or the local stack name, in this order."""
    given = variables() | {PREFIX + name.upper(): value for name in OF_TABLES if (value := shared.get(name))}
    profile, region, endpoint_url = map(shared.get, ("profile", "region", "endpoint_url"))
    place = AwsPlace(profile, region, endpoint_url)
    elsewhere = {"--profile": profile, "--region": region, "--endpoint-url": endpoint_url}
    elsewhere |= {_source(name): given.get(PREFIX + name) for name in OUTPUTS}
    try:
        may_be_local = not any(elsewhere.values())
        if may_be_local and shared.get("stack") in {None, "", LOCAL}:
            await_local_stack(tell)
        found, place = find_stack(shared.get("stack"), place, may_be_local=may_be_local)
        return _connection(found, place, given, [name for name, value in elsewhere.items() if value])
    except BaseException:
        place.close()
        raise


def _connection(stack: Stack, place: AwsPlace, given: Mapping[str, str], elsewhere: Sequence[str]) -> Connection:
    known = stack.variables() | dict(given)
    for name in ("ITEMS_TABLE", "CURSOR_TABLE"):
        if PREFIX + name not in known:
            if not elsewhere:
                # The local stack is meant then.
                refuse_dead_stack()
            needed = f"{_option_of(name)} (or {PREFIX}{name})"
            raise SettingsError(f"which tables? Give --stack NAME, or {needed}{local_hint(elsewhere)}")
    return Connection(
        Settings.from_env(known),
        place,
        known.get(PREFIX + "CONTROL_TABLE"),
        known.get(PREFIX + "CONSUMER", DEFAULT_CONSUMER),
        stack,
    )


def _source(name: str) -> str:
    """Return what gives a name: the variable, if it is set, else the option."""
    return PREFIX + name if PREFIX + name in variables() else _option_of(name)


def _option_of(name: str) -> str:
    return f"--{name.lower().replace('_', '-')}"


def _flags(shared: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the options that were given, other than by a variable; a consumer's name is up to each command."""
    known = variables()
    given = {
        name: value
        for name, value in shared.items()
        if value and name != "consumer" and known.get(PREFIX + name.upper()) != value
    }
    return tuple(word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value))


def _place(name: str, help_: str, *, metavar: str = "NAME") -> inspect.Parameter:
    envvar = f"{PREFIX}{name.upper()}" if name in OF_TABLES else None
    found = typer.Option(help=help_, envvar=envvar, metavar=metavar, rich_help_panel="Where to look")
    return option(name, Annotated[str | None, found])


SHARED = (
    _place("stack", "The CloudFormation stack whose tables to use."),
    _place("items_table", "The items table."),
    _place("cursor_table", "The cursor table."),
    _place("control_table", "The control table."),
    _place("queue_key", "The field that names a message's queue."),
    _place("seq_key", "The field that holds a message's seq."),
    _place("consumer", "The consumer."),
    _place("profile", "The AWS profile."),
    _place("region", "The AWS region."),
    _place("endpoint_url", "Another endpoint of AWS.", metavar="URL"),
)


def connected(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options; it is called with what they come to, as `connection`. Errors are one line."""

    @wraps(command)
    def run(**given: Any) -> None:
        shared = {one.name: given.pop(one.name) for one in SHARED}
        with plain_errors(), closing(connect(**shared)) as found:
            asked = shared["consumer"] if shared["consumer"] != variables().get(PREFIX + "CONSUMER") else None
            connection = replace(found, flags=_flags(shared), asked_consumer=asked)
            with leading_here(connection), _naming_what_is_alike(connection):
                command(connection, **given)

    return with_options(run, command, {"connection": ()}, SHARED)
