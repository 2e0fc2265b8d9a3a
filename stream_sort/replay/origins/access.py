"""How the tables are reached: plain values that go to every executor, and the clients that are made there.

And whether they are what they are taken for, by their keys, before anything is read or written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stream_sort.aws.clients import make_client
from stream_sort.errors import AccessDenied, OtherKeys, QueueNotFound, RowDamaged
from stream_sort.model.message import KeyNames
from stream_sort.settings import Settings
from stream_sort.stores.dynamodb.archive_marks import DynamoArchiveMarks
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.raw_pages import RawPages
from stream_sort.stores.dynamodb.tables import TableNames
from stream_sort.stream_sorter import StreamSorter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.errors import StreamSortError
    from stream_sort.model.records import Cursor, CursorPage
    from stream_sort.ports import CursorStore, Homes
    from stream_sort.replay.ranges import Selection

# A bulk job outlasts a table that throttles for a while.
PATIENCE = 120.0
# What is asked before anything begins is answered soon, or not at all.
SHORT_PATIENCE = 10.0


@dataclass(frozen=True)
class TableAccess:
    """The tables of a queue's messages, and where they are. Picklable: what is made of it stays where it was made."""

    items_table: str
    cursor_table: str
    queue_key: str = "queue"
    seq_key: str = "seq"
    region: str | None = None
    endpoint_url: str | None = None
    first_seq: int = 0

    def __post_init__(self) -> None:
        _ = self.names

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def names(self) -> TableNames:
        """The tables' and keys' names, checked."""
        return TableNames(self.items_table, self.cursor_table, self.keys)

    @property
    def keys(self) -> KeyNames:
        """The names of the two keys."""
        return KeyNames(self.queue_key, self.seq_key)

    @property
    def settings(self) -> Settings:
        """The settings of a sorter on these tables."""
        return Settings(
            items_table=self.items_table,
            cursor_table=self.cursor_table,
            queue_key=self.queue_key,
            seq_key=self.seq_key,
        )

    @cached_property
    def sorter(self) -> StreamSorter:
        """A sorter on the tables, made here and once."""
        return StreamSorter(
            items_table=self.items_table,
            cursor_table=self.cursor_table,
            queue_key=self.queue_key,
            seq_key=self.seq_key,
            first_seq=self.first_seq,
            client=self.client(),
        )

    @property
    def homes(self) -> Homes:
        """The tables behind their ports."""
        return self.sorter.homes

    def client(self) -> Any:
        """Return a client of its own."""
        return make_client(self.settings, region=self.region, endpoint_url=self.endpoint_url)

    def pages(self, *, consistent: bool) -> RawPages:
        """Return a bulk reader with a client of its own."""
        return RawPages(Calls(self.client(), PATIENCE), self.names, consistent=consistent)

    def archive_marks(self, control_table: str, address: str) -> DynamoArchiveMarks:
        """Return the watermarks of the archive at an address."""
        return DynamoArchiveMarks(Calls(self.client(), PATIENCE), control_table, address)

    def described(self, patience: float = SHORT_PATIENCE) -> dict[str, Any]:
        """Return what DynamoDB says of the items table."""
        return _described(Calls(self.client(), patience), self.items_table)

    def cursors(self, selection: Selection, damaged: dict[str, StreamSortError] | None = None) -> Iterator[Cursor]:
        """Yield the cursor rows of the queues that are wanted; a queue that is named and has none is an error.

        So is a row that cannot be read, for who would miss its queue; where `damaged` is given, it notes those instead.
        """
        store = self.homes.only.cursors
        for queue in selection.queues or selection.only or ():
            if not selection.wants_queue(queue):
                continue
            try:
                cursor = store.get(queue)
            except RowDamaged as error:
                if damaged is None:
                    raise
                damaged[queue] = error
                continue
            if cursor is not None:
                yield cursor
            elif selection.queues is not None:
                # Says CursorLost if it had a row once.
                self.sorter.position(queue)
                raise QueueNotFound(queue)
        if selection.queues is None and selection.only is None:
            yield from self._all_cursors(damaged)

    @cached_property
    def _checked(self) -> StreamSorter:
        """A sorter on tables that have these keys: a listing passes over rows that it cannot read, be it all."""
        check_keys(self)
        return self.sorter

    def _all_cursors(self, damaged: dict[str, StreamSortError] | None) -> Iterator[Cursor]:
        for page in cursor_pages(self._checked.homes.only.cursors):
            if damaged is not None:
                damaged |= page.damaged
            yield from page.whole() if damaged is None else page.rows


def cursor_pages(store: CursorStore) -> Iterator[CursorPage]:
    """Yield all cursor rows, page by page."""
    page = store.rows()
    yield page
    while page.next is not None:
        page = store.rows(page.next)
        yield page


def check_keys(access: TableAccess) -> None:
    """Raise TableNotFound for a table that is not there, OtherKeys for one with other keys.

    Whoever may not describe tables is taken at his word.
    """
    client = access.client()
    wanted = (
        ("items", access.items_table, [access.queue_key, access.seq_key]),
        ("cursor", access.cursor_table, [access.queue_key]),
    )
    for kind, table, keys in wanted:
        try:
            schema = _described(Calls(client, SHORT_PATIENCE), table)["KeySchema"]
        except AccessDenied:
            return
        # HASH comes before RANGE.
        found = [key["AttributeName"] for key in sorted(schema, key=lambda key: str(key["KeyType"]))]
        if found != keys:
            raise OtherKeys(
                f"the {kind} table {table} has the key {_shown(found)}; it should be {_shown(keys)}: are the tables "
                "swapped, or is the queue key or the seq key another (--queue-key and --seq-key; queueKey and seqKey)? "
                f"It was looked for in {client.meta.region_name} ({client.meta.endpoint_url})",
                table=table,
            )


def _described(calls: Calls, table: str) -> dict[str, Any]:
    told: dict[str, Any] = calls("describe_table", table, TableName=table).body["Table"]
    return told


def _shown(keys: list[str]) -> str:
    return " and ".join(map(repr, keys))
