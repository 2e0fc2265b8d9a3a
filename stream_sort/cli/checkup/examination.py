"""The whole checkup: tables, then the stack around them if one is named, then the queues."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.cli.checkup.asking import Aws, Unanswered
from stream_sort.cli.checkup.deployment import check_stack
from stream_sort.cli.checkup.finding import Checkup, Finding, not_checked
from stream_sort.cli.checkup.guard import guarded
from stream_sort.cli.checkup.queues import check_consumers, check_queues
from stream_sort.cli.checkup.standing import read_standings
from stream_sort.cli.checkup.tables import Table, check_stream, check_table
from stream_sort.errors import StoreUnavailable, TableNotFound
from stream_sort.model.message import KeyNames
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.tables import TableNames, control_table, cursor_table, items_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stream_sort.cli.connection import Connection

# Keys are all that advance needs, and every stream has them.
ANY_VIEW = ""
NO_STACK = "functions, versions, dead letters, mappings, roles, schedules, alarms: no stack is named; give --stack NAME"


@dataclass(frozen=True, slots=True)
class CheckupTerms:
    """Which queues to look at, and how many seconds a gap may be open."""

    pattern: str = "*"
    old_gap: float = 3_600.0


def examine(connection: Connection, terms: CheckupTerms) -> Checkup:
    """Check everything that the connection leads to; raises only if AWS is out of reach or knows nobody here."""
    aws = Aws(connection)
    tables: dict[str, Table] = {}
    found = [*_tables(aws, tables)]
    if aws.stack:
        found += guarded("stack", partial(check_stack, aws, tables))
    else:
        found.append(not_checked("stack", NO_STACK))
    if any(table.found is None for table in tables.values()):
        found.append(not_checked("queues", "a table is missing, see above"))
    else:
        found += guarded("queues", partial(_queues, connection, terms))
    return Checkup(tuple(found))


def _tables(aws: Aws, tables: dict[str, Table]) -> Iterator[Finding]:
    settings, control = aws.connection.settings, aws.connection.control
    names = TableNames(settings.items_table, settings.cursor_table, KeyNames(settings.queue_key, settings.seq_key))
    wanted = {"items": items_table(names), "cursor": cursor_table(names)}
    if control is not None:
        wanted["control"] = control_table(control)
    for kind, request in wanted.items():
        yield from guarded("tables", partial(_table, aws, tables, kind, request), StoreUnavailable)
    if control is None:
        yield not_checked("tables", "no control table is named; give --control-table")


def _table(aws: Aws, tables: dict[str, Table], kind: str, request: dict[str, Any]) -> Iterator[Finding]:
    table = tables[kind] = _described(aws, kind, request)
    view = request.get("StreamSpecification", {}).get("StreamViewType")
    if kind == "items" and aws.stack:
        view = ANY_VIEW
    yield from check_table(table, aws)
    yield from check_stream(table, view, aws)


def _described(aws: Aws, kind: str, request: dict[str, Any]) -> Table:
    """A table as it is. Asked as a sorter asks, in whose words it is told that AWS is out of reach."""
    settings, name = aws.connection.settings, request["TableName"]
    calls = Calls(aws.connection.place.dynamodb(settings), settings.deadline)
    try:
        found = calls("describe_table", name, TableName=name).body["Table"]
    except TableNotFound:
        return Table(kind, request, None)
    return Table(kind, request, found, _recovery(aws, name))


def _recovery(aws: Aws, name: str) -> str:
    try:
        answer = aws.ask("dynamodb", "describe_continuous_backups", TableName=name) or {}
    except Unanswered:
        return "not known"
    told = answer.get("ContinuousBackupsDescription", {}).get("PointInTimeRecoveryDescription", {})
    return "on" if told.get("PointInTimeRecoveryStatus") == "ENABLED" else "off"


def _queues(connection: Connection, terms: CheckupTerms) -> Iterator[Finding]:
    found = read_standings(connection, terms.pattern, terms.old_gap)
    yield from guarded("queues", partial(check_queues, found, terms.old_gap, connection))
    yield from guarded("consumers", partial(check_consumers, found, connection))
