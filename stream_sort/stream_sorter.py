"""Settings in, wired services out: the constructors that users call."""

from __future__ import annotations

import time
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, Self, Unpack

from stream_sort.errors import InvalidInput, SettingsError, shown
from stream_sort.model.durations import is_time
from stream_sort.model.gap_policy import GapPolicy
from stream_sort.model.message import KeyNames, check_seq
from stream_sort.ports import Homes
from stream_sort.release.advancer import Limits
from stream_sort.settings import Settings
from stream_sort.sorter import Options, Sorter

if TYPE_CHECKING:
    from typing import TypedDict

    from stream_sort.ports import Clock

    class Tuning(TypedDict, total=False):
        """Settings that most users leave alone; see Settings."""

        gap_policy: str | GapPolicy
        deadline: float
        max_advance: int
        window: int
        in_flight: int


# What only a stack can say of its tables.
FACTS = {"items_table", "cursor_table", "queue_key", "seq_key", "first_seq"}


class StreamSorter(Sorter):
    """The sorter on two DynamoDB tables, or in memory.

    Safe to share by threads. Making one is cheap but for the boto3 client: make it once a process.
    """

    def __init__(  # noqa: PLR0913  # the public contract: each is a keyword with a default
        self,
        items_table: str = "Items",
        cursor_table: str = "Cursor",
        *,
        queue_key: str = "queue",
        seq_key: str = "seq",
        first_seq: int = 0,
        on_conflict: str = "report",
        client: Any = None,
        clock: Clock = time.time,
        **tuning: Unpack[Tuning],
    ) -> None:
        """Wire a sorter to tables; `client` is a boto3 dynamodb client, made when absent."""
        settings = Settings(
            items_table=items_table,
            cursor_table=cursor_table,
            queue_key=queue_key,
            seq_key=seq_key,
            first_seq=first_seq,
            on_conflict=on_conflict,
            **_plain(tuning),
        )
        super().__init__(_dynamodb(settings, client), _options(settings), _checked(clock))

    @classmethod
    def from_env(cls, *, client: Any = None, clock: Clock = time.time) -> Self:
        """Wire a sorter as the STREAM_SORT_* variables say."""
        return cls(**asdict(Settings.from_env()), client=client, clock=clock)

    @classmethod
    def from_stack(  # noqa: PLR0913  # the public contract: each is a keyword with a default
        cls,
        name: str,
        *,
        region: str | None = None,
        profile: str | None = None,
        endpoint_url: str | None = None,
        session: Any = None,
        client: Any = None,
        on_conflict: str = "report",
        clock: Clock = time.time,
        **tuning: Unpack[Tuning],
    ) -> Self:
        """Wire a sorter to the tables of a deployed stack, with the keys, first seq and gap policy that it has.

        `name` is that of the CloudFormation stack; `local` is the local stack, if it is up and no other keyword says
        where to look. CloudFormation is asked once, which takes the right cloudformation:DescribeStacks. `session` is
        a boto3 session, `client` a boto3 dynamodb client that is used for the tables. The STREAM_SORT_* variables are
        not read.
        """
        from stream_sort.aws.accounts import named_stack  # noqa: PLC0415  # boto3 is loaded here, not by `import stream_sort`

        access = {"region": region, "profile": profile, "endpoint_url": endpoint_url, "session": session}
        stack, place = named_stack(name, **access, client=client)
        own = _plain(tuning)
        for setting in own.keys() & FACTS:
            raise SettingsError(
                f"{setting} is what the stack says; leave it out, or name the tables: StreamSorter(...)"
            )
        settings = replace(Settings.from_env(stack.variables()), on_conflict=on_conflict, **own)
        return cls(**asdict(settings), client=client or place.dynamodb(settings), clock=clock)

    @classmethod
    def in_memory(
        cls,
        *,
        queue_key: str = "queue",
        seq_key: str = "seq",
        first_seq: int = 0,
        on_conflict: str = "report",
        clock: Clock = time.time,
        **tuning: Unpack[Tuning],
    ) -> Self:
        """Make the same thing with no AWS; nothing survives the process."""
        from stream_sort.stores.memory.tables import MemoryTables  # noqa: PLC0415  # one of two stores is loaded

        settings = Settings(
            queue_key=queue_key, seq_key=seq_key, first_seq=first_seq, on_conflict=on_conflict, **_plain(tuning)
        )
        sorter = cls.__new__(cls)
        Sorter.__init__(sorter, Homes(MemoryTables().home()), _options(settings), _checked(clock))
        return sorter

    def create_tables(self) -> None:
        """Create the tables if they are not there, and wait for them; for local use and tests."""
        for home in self.homes.all():
            home.create_tables()


def _plain(tuning: Tuning) -> Any:
    """Return the settings as the environment would give them."""
    unknown = tuning.keys() - {field.name for field in fields(Settings)}
    if unknown:
        raise SettingsError(f"no such setting: {', '.join(sorted(unknown))}")
    return {**tuning, "gap_policy": str(tuning["gap_policy"])} if "gap_policy" in tuning else tuning


def _checked(clock: Clock) -> Clock:
    if not callable(clock):
        raise SettingsError(f"clock is {shown(clock)}; it must be a function that returns the time")
    if clock is time.time:
        return clock

    def checked() -> float:
        now = clock()
        if not is_time(now):
            raise SettingsError(f"the clock says {shown(now)}; it must return the time in seconds since the epoch")
        return now

    return checked


def _options(settings: Settings) -> Options:
    try:
        check_seq(settings.first_seq, "first_seq")
        policy = GapPolicy.parse(str(settings.gap_policy))
    except InvalidInput as error:
        raise SettingsError(str(error)) from error
    return Options(
        keys=KeyNames(settings.queue_key, settings.seq_key),
        first_seq=settings.first_seq,
        raise_conflicts=settings.on_conflict == "raise",
        gap_policy=policy,
        limits=Limits(max_advance=settings.max_advance),
        window=settings.window,
        in_flight=settings.in_flight,
        deadline=settings.deadline,
    )


def _dynamodb(settings: Settings, client: Any) -> Homes:
    # boto3 is loaded here, not by `import stream_sort`.
    from stream_sort.stores.dynamodb import connect  # noqa: PLC0415

    return Homes(connect(settings, client))
