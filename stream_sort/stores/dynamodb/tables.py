"""What the tables look like: attribute names, keys, the index, the stream. Attribute names come from here only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.errors import SettingsError, StoreError
from stream_sort.model.activity import SHARES
from stream_sort.model.message import RESERVED_PREFIX
from stream_sort.model.table_names import check_table_name

if TYPE_CHECKING:
    from stream_sort.model.message import KeyNames
    from stream_sort.stores.dynamodb.calls import Calls

# Items: what we keep beside the message's own fields.
ARRIVED_AT = RESERVED_PREFIX + "at"
SEEN = RESERVED_PREFIX + "seen"
TYPES = RESERVED_PREFIX + "types"
SKIPPED = RESERVED_PREFIX + "skipped"
LATE = RESERVED_PREFIX + "late"
LATE_TYPES = RESERVED_PREFIX + "late_types"

# Items: a withdrawal, in a partition of its own; its number stands under the seq key's name.
WITHDRAWN = RESERVED_PREFIX + "withdrawn"
WITHDRAWN_SEQ = RESERVED_PREFIX + "withdrawn_seq"
WITHDRAWN_AT = RESERVED_PREFIX + "withdrawn_at"
REASON = RESERVED_PREFIX + "reason"

# Cursor: what stands beside the position, which has the seq key's name.
FIRST_SEQ = RESERVED_PREFIX + "first_seq"
POLICY = RESERVED_PREFIX + "policy"
MOVED_AT = RESERVED_PREFIX + "moved_at"
NUDGES = RESERVED_PREFIX + "nudges"
NUDGED_AT = RESERVED_PREFIX + "nudged_at"
WAITING = RESERVED_PREFIX + "waiting"
WAITING_SINCE = RESERVED_PREFIX + "waiting_since"
FLOOR = RESERVED_PREFIX + "floor"
SHARE = RESERVED_PREFIX + "share"
HOUR = RESERVED_PREFIX + "hour"
WITHDRAWALS = RESERVED_PREFIX + "withdrawals"
# The gap at which a sweep found the queue waiting: its first seq, the seq behind its last one, since when, and the
# number of the last withdrawal then; and the seq behind a gap too long that was found before and lies beyond it.
GAP = RESERVED_PREFIX + "gap"

# Control: keys, and what the sparse index lists.
CONTROL_PK = "pk"
CONTROL_SK = "sk"
LISTING = "listing"
LISTED_AT = "listed_at"
LISTING_INDEX = "listing"

# The index holds rows with both attributes only: queues that wait. Keys only, so that moving a cursor does
# not write to it. Spread over several keys, because an index that is throttled throttles its table; a version that
# knew one key wrote the first of them.
WAITING_INDEX = "waiting"
WAITING_SHARES = ("y", *(f"y{share}" for share in range(1, SHARES)))
# The index of queues by the hour in which they were last active. Keys only: it is written once a queue and hour.
ACTIVE_INDEX = "active"
# What tables of an earlier version lack: they work without it, and slower.
OPTIONAL_INDEXES = frozenset({ACTIVE_INDEX})
# What AWS calls a table that is there already.
ALREADY_THERE = "ResourceInUseException"


@dataclass(frozen=True, slots=True)
class TableNames:
    """The two tables of a sorter, and the key names they share."""

    items: str
    cursor: str
    keys: KeyNames

    def __post_init__(self) -> None:
        for name in (self.items, self.cursor):
            check_table_name(name)
        if self.items == self.cursor:
            raise SettingsError(f"items_table and cursor_table are both {self.items!r}; they must differ")


def items_table(names: TableNames) -> dict[str, Any]:
    """Return the CreateTable request of the items table."""
    return {
        "TableName": names.items,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [_key(names.keys.queue, "HASH"), _key(names.keys.seq, "RANGE")],
        "AttributeDefinitions": [_attribute(names.keys.queue, "S"), _attribute(names.keys.seq, "N")],
    }


def cursor_table(names: TableNames) -> dict[str, Any]:
    """Return the CreateTable request of the cursor table."""
    return {
        "TableName": names.cursor,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [_key(names.keys.queue, "HASH")],
        "AttributeDefinitions": [
            _attribute(names.keys.queue, "S"),
            _attribute(WAITING, "S"),
            _attribute(WAITING_SINCE, "N"),
            _attribute(SHARE, "S"),
            _attribute(HOUR, "N"),
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": WAITING_INDEX,
                "KeySchema": [_key(WAITING, "HASH"), _key(WAITING_SINCE, "RANGE")],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
            {
                "IndexName": ACTIVE_INDEX,
                "KeySchema": [_key(SHARE, "HASH"), _key(HOUR, "RANGE")],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }


def control_table(name: str) -> dict[str, Any]:
    """Return the CreateTable request of a control table."""
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [_key(CONTROL_PK, "HASH"), _key(CONTROL_SK, "RANGE")],
        "AttributeDefinitions": [
            _attribute(CONTROL_PK, "S"),
            _attribute(CONTROL_SK, "S"),
            _attribute(LISTING, "S"),
            _attribute(LISTED_AT, "N"),
        ],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": LISTING_INDEX,
                "KeySchema": [_key(LISTING, "HASH"), _key(LISTED_AT, "RANGE")],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    }


def create(calls: Calls, names: TableNames) -> None:
    """Create the items and the cursor table; see `create_table`."""
    for request in (items_table(names), cursor_table(names)):
        create_table(calls, request)


def create_table(calls: Calls, request: dict[str, Any]) -> None:
    """Create a table unless it is there, check its keys, and wait until it can be used."""
    try:
        calls("create_table", request["TableName"], **request)
    except StoreError as error:
        if error.code != ALREADY_THERE:
            raise
    _await(calls, request)


def _await(calls: Calls, request: dict[str, Any]) -> None:
    table = request["TableName"]
    patience = calls.patience("describe_table", table)
    while True:
        there = calls("describe_table", table).body["Table"]
        found, wanted = _keys_of(there), _keys_of(request)
        if found != wanted:
            raise SettingsError(f"table {table!r} exists with other keys: {found}, not {wanted}")
        indexes = {index["IndexName"] for index in there.get("GlobalSecondaryIndexes", ())}
        for index in request.get("GlobalSecondaryIndexes", ()):
            if index["IndexName"] not in indexes | OPTIONAL_INDEXES:
                raise SettingsError(f"table {table!r} exists without the index {index['IndexName']!r}; add it: {index}")
        if not _streams_alike(there, request):
            raise SettingsError(
                f"table {table!r} exists without the stream that consumers follow; enable it: "
                f"{request['StreamSpecification']}"
            )
        if there.get("TableStatus", "ACTIVE") in {"ACTIVE", "UPDATING"}:
            return
        patience.wait(f"the table is still {there['TableStatus']}")


def _streams_alike(there: dict[str, Any], request: dict[str, Any]) -> bool:
    wanted = request.get("StreamSpecification")
    return wanted is None or there.get("StreamSpecification") == wanted


def _keys_of(table: dict[str, Any]) -> list[tuple[str, str, str]]:
    types = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    return sorted((key["KeyType"], key["AttributeName"], types[key["AttributeName"]]) for key in table["KeySchema"])


def _key(name: str, kind: str) -> dict[str, str]:
    return {"AttributeName": name, "KeyType": kind}


def _attribute(name: str, kind: str) -> dict[str, str]:
    return {"AttributeName": name, "AttributeType": kind}
