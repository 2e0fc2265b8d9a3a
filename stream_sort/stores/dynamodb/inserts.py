"""First write wins, one put or 25 a call.

The batch is a fast path only: whatever it does not decide for a record, that record's own conditional put decides.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from stream_sort.aws.errors import RETRYABLE_CODES
from stream_sort.errors import (
    AccessDenied,
    OtherKeys,
    StoreError,
    StoreMisconfigured,
    StoreUnavailable,
    StreamSortError,
    TableNotFound,
)
from stream_sort.stores.dynamodb.calls import PassingFault
from stream_sort.stores.dynamodb.paging import MAX_WRITES, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stream_sort.ports.in_flight import InFlight
    from stream_sort.stores.dynamodb.calls import Calls, Patience, Reply
    from stream_sort.stores.dynamodb.tables import TableNames
    from stream_sort.stores.dynamodb.values import Wire

    Answers: TypeAlias = dict[int, Wire | StreamSortError | None]

MAX_STATEMENT = 8_192
# Field names go into the text of a statement; any other name takes the way of the single put.
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]*")


class HangingQueues:
    """Counts the writes in a row that a queue did not answer, as this process saw it; it decides only how to write.

    Holds up to `limit` queues. Safe to share by threads.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._counts: dict[str, int] = {}
        self._lock = threading.Lock()

    def count(self, queue: str) -> int:
        """Return how many writes to a queue got no answer since the last one that did."""
        return self._counts.get(queue, 0)

    def note(self, queues: Iterable[str]) -> None:
        """Count a write to these queues that got no answer."""
        with self._lock:
            for queue in set(queues):
                self._counts[queue] = self._counts.pop(queue, 0) + 1
                if len(self._counts) > self._limit:
                    del self._counts[next(iter(self._counts))]

    def forget(self, queues: Iterable[str]) -> None:
        """Count anew for queues that answered."""
        with self._lock:
            for queue in queues:
                self._counts.pop(queue, None)


class Inserts:
    """Inserts records with distinct keys: None where it was stored, else the record that was there first."""

    def __init__(self, calls: Calls, names: TableNames, in_flight: InFlight) -> None:
        self._calls = calls
        self._table = names.items
        self._keys = names.keys
        self._in_flight = in_flight
        self._batching = True
        self._unanswered = HangingQueues()
        self.keys_fit = False

    def one(self, record: Wire) -> Wire | None:
        """Insert one record with a conditional put."""
        self.check_keys(self._queue(record))
        return _there(self._calls("put_item", self._table, **self._insert(record)))

    def many(self, records: Sequence[Wire]) -> list[Wire | StreamSortError | None]:
        """Insert records, several calls at once; one answer for each, in order.

        One slot that hangs fails a batch for all: records of a queue that did not answer its last write go alone.
        """
        for record in records[:1]:
            self.check_keys(self._queue(record))
        together = [index for index, record in enumerate(records) if not self._unanswered.count(self._queue(record))]
        parts = [together[start : start + MAX_WRITES] for start in range(0, len(together), MAX_WRITES)]
        chunks = [{index: records[index] for index in part} for part in parts]
        patience = self._calls.patience("put_item", self._table)
        answers = {index: one for chunk in self._in_flight.map(self._chunk, chunks) for index, one in chunk.items()}
        hung = next((one for one in answers.values() if isinstance(one, StoreUnavailable)), None)
        if hung is not None and patience.is_over:
            # A second hang behind the first one is not begun: these have their turn when all others had theirs.
            answers |= {index: hung for index in range(len(records)) if index not in answers}
        self._alone(records, answers)
        return [answers[index] for index in range(len(records))]

    def check_keys(self, queue: str) -> None:
        """Read a slot before the first write, unless one was read: a table with other keys may take what is put.

        TableNotFound or OtherKeys before anything is written. Any other error is left to the write itself.
        """
        if self.keys_fit:
            return
        target = self._calls.patience("query", self._table).target
        names = {"#queue": self._keys.queue, "#seq": self._keys.seq}
        request: dict[str, Any] = {
            "TableName": self._table,
            "ConsistentRead": True,
            "KeyConditionExpression": "#queue = :queue AND #seq > :seq",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {":queue": {"S": queue}, ":seq": {"N": "0"}},
            "Limit": 1,
        }
        try:
            self._calls.once("query", target, **request)
        except (TableNotFound, OtherKeys):
            raise
        except (StreamSortError, PassingFault):
            return
        self.keys_fit = True

    def _chunk(self, records: Mapping[int, Wire]) -> Answers:
        """Insert what can be in one batch; what that does not decide has no answer."""
        answers: Answers = {}
        statements = {index: _statement(self._table, tuple(record)) for index, record in records.items()}
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
            self._try_batch(requests, records, answers)
        self._fetch(records, answers)
        return answers

    def _try_batch(self, requests: dict[int, dict[str, Any]], records: Mapping[int, Wire], answers: Answers) -> None:
        """Decide what a batch can decide; what it has decided stays so, whatever happens to the rest."""
        try:
            self._execute(requests, records, answers)
        except AccessDenied:
            self._batching = False
        except StoreMisconfigured:
            raise
        except StreamSortError:
            return
        except Exception:  # noqa: BLE001  # an emulator without PartiQL
            self._batching = False

    def _execute(self, requests: dict[int, dict[str, Any]], records: Mapping[int, Wire], answers: Answers) -> None:
        """Run statements until each is decided, or cannot be here; an empty record stands for one to fetch."""
        patience = self._calls.patience("batch_execute_statement", self._table)
        pending = dict.fromkeys(requests, "")
        try:
            while pending:
                statements = [requests[index] for index in pending]
                try:
                    reply = self._calls.once("batch_execute_statement", patience.target, Statements=statements)
                except PassingFault as fault:
                    self._note_fault(fault, (self._queue(records[index]) for index in pending))
                    if patience.has_time and not isinstance(fault.problem, ClientError):
                        # One slot that does not answer fails the call for all: who has time puts each alone.
                        return
                    patience.wait(fault.problem)
                    continue
                pending = _sort_out(dict(zip(pending, reply.body["Responses"], strict=True)), answers)
                if pending:
                    patience.wait(next(iter(pending.values())))
        except StoreUnavailable as error:
            answers.update(dict.fromkeys(pending, error))

    def _alone(self, records: Sequence[Wire], answers: Answers) -> None:
        """Put what is undecided one by one, in rounds within one deadline: what is throttled delays no other record.

        Those of queues that did not answer most often go last.
        """
        patience = self._calls.patience("put_item", self._table)
        undecided = [index for index in range(len(records)) if index not in answers]
        undecided.sort(key=lambda index: self._unanswered.count(self._queue(records[index])))
        try:
            while undecided:
                faults = self._round(undecided, records, answers, patience)
                undecided = list(faults)
                if faults:
                    patience.wait(next(iter(faults.values())))
        except StoreUnavailable as error:
            answers.update(dict.fromkeys(undecided, error))

    def _round(
        self, undecided: Sequence[int], records: Sequence[Wire], answers: Answers, patience: Patience
    ) -> dict[int, Exception]:
        """Try each record once, some at once, so that one that hangs holds up no other; answers those to try again.

        When failures took all the time, the rest is not tried.
        """
        problems: list[Exception] = []

        def put(index: int) -> Exception | None:
            if problems and patience.is_over:
                return problems[-1]
            queue = self._queue(records[index])
            try:
                answers[index] = _there(self._calls.once("put_item", patience.target, **self._insert(records[index])))
            except PassingFault as fault:
                self._note_fault(fault, [queue])
                problems.append(fault.problem)
                return fault.problem
            except StoreMisconfigured:
                raise
            except StoreError as error:
                answers[index] = error
            self._unanswered.forget([queue])
            return None

        problem_of = dict(zip(undecided, self._in_flight.map(put, undecided), strict=True))
        return {index: problem for index, problem in problem_of.items() if problem is not None}

    def _note_fault(self, fault: PassingFault, queues: Iterable[str]) -> None:
        """Remember the queues of a write that got no answer; one that cannot be read is an answer."""
        if isinstance(fault.problem, BotoCoreError):
            self._unanswered.note(queues)

    def _fetch(self, records: Mapping[int, Wire], answers: Answers) -> None:
        """Read the records that stood in the way but were not shown; one that is gone again is put alone.

        So is one that cannot be read for a reason that stays: its own conditional put shows it, or what is wrong.
        """
        wanted = {self._key(records[index]): index for index, answer in answers.items() if answer == {}}
        if not wanted:
            return
        names = (self._keys.queue, self._keys.seq)
        keys = [{name: records[index][name] for name in names} for index in wanted.values()]
        for index in wanted.values():
            del answers[index]
        try:
            for record in rows_of(self._calls, self._table, keys, ConsistentRead=True):
                answers[wanted[self._key(record)]] = record
        except StoreUnavailable as error:
            answers.update({index: error for index in wanted.values() if index not in answers})
        except StoreMisconfigured:
            raise
        except StoreError:
            return

    def _insert(self, record: Wire) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "Item": record,
            "ConditionExpression": "attribute_not_exists(#queue)",
            "ExpressionAttributeNames": {"#queue": self._keys.queue},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }

    def _queue(self, record: Wire) -> str:
        queue: str = record[self._keys.queue]["S"]
        return queue

    def _key(self, record: Wire) -> tuple[str, int]:
        return self._queue(record), int(record[self._keys.seq]["N"])


def _there(reply: Reply) -> Wire | None:
    """Return the record that stood against an insert, None if there was none."""
    return reply.item if reply.refused else None


def _sort_out(responses: dict[int, dict[str, Any]], answers: Answers) -> dict[int, str]:
    """Note what the responses to statements decide; answers those to send again, with the reason."""
    throttled: dict[int, str] = {}
    for index, response in responses.items():
        error = response.get("Error")
        if error is None:
            answers[index] = None
        elif error["Code"] in ("DuplicateItem", "ConditionalCheckFailed"):
            answers[index] = response.get("Item") or error.get("Item") or {}
        elif error["Code"] in RETRYABLE_CODES:
            throttled[index] = error["Code"]
    return throttled


@lru_cache(maxsize=256)
def _statement(table: str, names: tuple[str, ...]) -> str | None:
    """Return the INSERT of a record with these fields; None if it cannot be said safely in PartiQL."""
    if not all(map(PLAIN_NAME.fullmatch, names)):
        return None
    fields = ",".join(f"'{name}':?" for name in names)
    statement = f'INSERT INTO "{table}" VALUE {{{fields}}}'
    return statement if len(statement) <= MAX_STATEMENT else None
