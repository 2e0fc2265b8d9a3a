"""First write wins, one put or 25 a call.

The batch is a fast path only: whatever it does not decide for a record, that record's own conditional put decides.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stream_sort.errors import AccessDenied, StoreError, StoreMisconfigured, StoreUnavailable, StreamSortError
from stream_sort.stores.dynamodb.errors import RETRYABLE_CODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_sort.inflight import InFlight
    from stream_sort.stores.dynamodb.calls import Calls
    from stream_sort.stores.dynamodb.tables import TableNames
    from stream_sort.stores.dynamodb.values import Wire

BATCH = 25
MAX_STATEMENT = 8_192
# Field names go into the text of a statement; any other name takes the way of the single put.
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]*")


class Inserts:
    """Inserts records with distinct keys: None where it was stored, else the record that was there first."""

    def __init__(self, calls: Calls, names: TableNames, in_flight: InFlight) -> None:
        self._calls = calls
        self._table = names.items
        self._keys = names.keys
        self._in_flight = in_flight
        self._batching = True

    def one(self, record: Wire) -> Wire | None:
        """Insert one record with a conditional put."""
        reply = self._calls(
            "put_item",
            self._table,
            TableName=self._table,
            Item=record,
            ConditionExpression="attribute_not_exists(#queue)",
            ExpressionAttributeNames={"#queue": self._keys.queue},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
        return reply.item if reply.refused else None

    def many(self, records: Sequence[Wire]) -> list[Wire | StreamSortError | None]:
        """Insert records, several calls at once; one answer for each, in order."""
        chunks = [records[start : start + BATCH] for start in range(0, len(records), BATCH)]
        return [answer for answers in self._in_flight.map(self._chunk, chunks) for answer in answers]

    def _chunk(self, records: Sequence[Wire]) -> list[Wire | StreamSortError | None]:
        answers: dict[int, Wire | StreamSortError | None] = {}
        statements = {index: _statement(self._table, tuple(record)) for index, record in enumerate(records)}
        batch = [index for index, statement in statements.items() if statement is not None]
        if self._batching and len(batch) > 1:
            requests = {
                index: {
                    "Statement": statements[index],
                    "Parameters": list(records[index].values()),
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                }
                for index in batch
            }
            try:
                answers = self._execute(requests)
            except StoreUnavailable as error:
                answers = dict.fromkeys(batch, error)
            except AccessDenied:
                self._batching = False
            except StoreMisconfigured:
                raise
            except StreamSortError:
                answers = {}
            except Exception:  # noqa: BLE001  # an emulator without PartiQL
                self._batching = False
        self._fetch(records, answers)
        return [answers[index] if index in answers else self._alone(record) for index, record in enumerate(records)]

    def _alone(self, record: Wire) -> Wire | StreamSortError | None:
        try:
            return self.one(record)
        except StoreMisconfigured:
            raise
        except StoreError as error:
            return error

    def _execute(self, requests: dict[int, dict[str, Any]]) -> dict[int, Wire | StreamSortError | None]:
        """Run statements until each is decided, or cannot be here; an empty record stands for one to fetch."""
        answers: dict[int, Wire | StreamSortError | None] = {}
        patience = self._calls.patience("BatchExecuteStatement", self._table)
        pending = list(requests)
        while pending:
            statements = [requests[index] for index in pending]
            body = self._calls("batch_execute_statement", self._table, Statements=statements).body
            throttled: dict[int, str] = {}
            for index, response in zip(pending, body["Responses"], strict=True):
                error = response.get("Error")
                if error is None:
                    answers[index] = None
                elif error["Code"] in ("DuplicateItem", "ConditionalCheckFailed"):
                    answers[index] = response.get("Item") or error.get("Item") or {}
                elif error["Code"] in RETRYABLE_CODES:
                    throttled[index] = error["Code"]
            pending = list(throttled)
            if pending:
                try:
                    patience.wait(throttled[pending[0]])
                except StoreUnavailable as late:
                    return answers | dict.fromkeys(pending, late)
        return answers

    def _fetch(self, records: Sequence[Wire], answers: dict[int, Wire | StreamSortError | None]) -> None:
        """Read the records that stood in the way but were not shown; one that is gone again is put alone."""
        wanted = {self._key(records[index]): index for index, answer in answers.items() if answer == {}}
        if not wanted:
            return
        names = (self._keys.queue, self._keys.seq)
        keys = [{name: records[index][name] for name in names} for index in wanted.values()]
        request: dict[str, Any] = {self._table: {"Keys": keys, "ConsistentRead": True}}
        patience = self._calls.patience("BatchGetItem", self._table)
        for index in wanted.values():
            del answers[index]
        try:
            while request:
                body = self._calls("batch_get_item", self._table, RequestItems=request).body
                for record in body["Responses"].get(self._table, ()):
                    answers[wanted[self._key(record)]] = record
                request = body.get("UnprocessedKeys") or {}
                if request:
                    patience.wait("UnprocessedKeys")
        except StoreUnavailable as error:
            answers.update({index: error for index in wanted.values() if index not in answers})

    def _key(self, record: Wire) -> tuple[str, int]:
        return record[self._keys.queue]["S"], int(record[self._keys.seq]["N"])


@lru_cache(maxsize=256)
def _statement(table: str, names: tuple[str, ...]) -> str | None:
    """The INSERT of a record with these fields; None if it cannot be said safely in PartiQL."""
    if not all(map(PLAIN_NAME.fullmatch, names)):
        return None
    fields = ",".join(f"'{name}':?" for name in names)
    statement = f'INSERT INTO "{table}" VALUE {{{fields}}}'
    return statement if len(statement) <= MAX_STATEMENT else None
