"""Whether tables are what they are taken for, by their keys; before anything is read or written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_sort.aws.clients import make_client
from stream_sort.errors import AccessDenied, OtherKeys
from stream_sort.stores.dynamodb.calls import Calls

if TYPE_CHECKING:
    from stream_sort.replay.origins.access import TableAccess

PATIENCE = 10.0


def check_keys(access: TableAccess) -> None:
    """Raise TableNotFound for a table that is not there, OtherKeys for one with other keys.

    Whoever may not describe tables is taken at his word.
    """
    client = make_client(access.settings, region=access.region, endpoint_url=access.endpoint_url)
    calls = Calls(client, PATIENCE)
    wanted = (
        ("items", access.items_table, [access.queue_key, access.seq_key]),
        ("cursor", access.cursor_table, [access.queue_key]),
    )
    for kind, table, keys in wanted:
        try:
            schema = calls("describe_table", table, TableName=table).body["Table"]["KeySchema"]
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


def _shown(keys: list[str]) -> str:
    return " and ".join(map(repr, keys))
