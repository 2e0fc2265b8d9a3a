"""Wire the DynamoDB stores to a client."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from stream_sort.aws.clients import make_client
from stream_sort.errors import SettingsError, shown
from stream_sort.model.message import KeyNames
from stream_sort.ports import Home
from stream_sort.ports.in_flight import InFlight
from stream_sort.stores.dynamodb import tables
from stream_sort.stores.dynamodb.calls import Calls
from stream_sort.stores.dynamodb.cursors import DynamoCursorStore, DynamoHeadReader
from stream_sort.stores.dynamodb.deletes import Deletes
from stream_sort.stores.dynamodb.inserts import Inserts
from stream_sort.stores.dynamodb.items import DynamoItemStore
from stream_sort.stores.dynamodb.withdrawals import DynamoWithdrawalStore

if TYPE_CHECKING:
    from stream_sort.ports import ControlStores
    from stream_sort.settings import Settings


def connect(settings: Settings, client: Any = None) -> Home:
    """Return the home whose tables the settings name."""
    if client is not None and not callable(getattr(client, "batch_execute_statement", None)):
        raise SettingsError(f"client is {shown(client)}; it must be what boto3.client('dynamodb') makes")
    calls = Calls(client or make_client(settings), settings.deadline)
    keys = KeyNames(settings.queue_key, settings.seq_key)
    names = tables.TableNames(settings.items_table, settings.cursor_table, keys)
    in_flight = InFlight(settings.in_flight)
    inserts = Inserts(calls, names, in_flight)
    return Home(
        items=DynamoItemStore(calls, names, inserts, Deletes(calls, names, in_flight)),
        cursors=DynamoCursorStore(calls, names),
        heads=DynamoHeadReader(calls, names),
        control=partial(_control, calls, names),
        create_tables=partial(tables.create, calls, names),
        withdrawals=DynamoWithdrawalStore(calls, names),
        requests=calls.tally.count,
        cursor_table=names.cursor.rpartition("/")[2],
        check_items=inserts.check_keys,
    )


def _control(calls: Calls, names: tables.TableNames, table: str) -> ControlStores:
    # pynamodb is loaded here: a sorter has no use for it.
    try:
        from stream_sort.stores.dynamodb.control import control_stores  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "pynamodb":
            raise
        raise SettingsError("consumers on DynamoDB need pynamodb: pip install 'stream-sort[lambda]'") from error
    return control_stores(calls, names, table)
