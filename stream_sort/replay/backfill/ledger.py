"""What a job has done so far, kept as small files: its plan, a record for each part, and its end.

Every file is written whole or not at all. The plan and the end are written once; a record is written by the task that
works on the part, and tells the truth whenever it was written: whoever resumes goes on from there. A run that has a
lease has its own file for a part, and of several the one of the last lease counts: what a run that was followed still
writes, however late, takes nothing back.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.errors import StoreError, StreamSortError, shown
from stream_sort.replay.backfill.tally import RangeTally
from stream_sort.replay.engine.plan import JobPlan
from stream_sort.replay.files.json_content import flaw, value_of
from stream_sort.replay.files.storage import AT_ONCE
from stream_sort.replay.ranges import is_stored_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stream_sort.replay.backfill.lease import Lease
    from stream_sort.replay.files.storage import Storage

PLAN = "plan.json"
END = "end.json"
RECORDS = "parts/"
NUMBER = "[0-9]{7}|[1-9][0-9]{7,}"
RECORD_NAME = re.compile(rf"{RECORDS}({NUMBER})(?:/({NUMBER}))?\.json")
MOST_WATCHED = 100


@dataclass(frozen=True, slots=True)
class PartRecord:
    """How far one part is; `ended` when nothing of it is left to do.

    `size` is that of its file, where it has one; `skips` says that the target was told to skip its holes.
    """

    number: int
    tallies: tuple[RangeTally, ...]
    ended: bool
    size: int | None = None
    skips: bool = False

    @property
    def rows(self) -> int:
        """How many slots were read and done."""
        return sum(one.rows + one.tombstones + one.outside for one in self.tallies)

    @property
    def has_holes(self) -> bool:
        """Whether it went on behind a hole, which may have been mended since."""
        return any(hole.through <= one.done for one in self.tallies for hole in one.missing)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The files of one job. Picklable, as it goes to every task. With a `lease`, nothing is kept once that is lost."""

    storage: Storage
    lease: Lease | None = None

    @property
    def where(self) -> str:
        """Where it is, for people."""
        return self.storage.uri

    def plan(self) -> JobPlan | None:
        """Return the plan of the job; None before it began."""
        if not self.storage.exists(PLAN):
            return None
        return JobPlan.decode(self.storage.read(PLAN), self.storage.address(PLAN))

    def begin(self, plan: JobPlan) -> JobPlan:
        """Fix the plan; of several that begin at once one wins, and all go by its plan."""
        if self.storage.put_if_absent(PLAN, plan.encode()):
            return plan
        there = self.plan()
        if there is None:
            raise StoreError(f"{self.where}: the plan was removed while the job began; run it again")
        there.check(plan.options, self.where)
        return there

    def record(self, number: int) -> PartRecord | None:
        """Return how far a part is; None if nothing of it is done."""
        found = max(self.storage.list(_folder(number)), key=_lease_of, default=_name(number))
        return self._read(found) if self.storage.exists(found) else None

    def commit(self, record: PartRecord) -> None:
        """Keep a record, in the place of the one before."""
        self.check_lease()
        queues = [one.wire() for one in record.tallies]
        document = {
            "part": record.number,
            "ended": record.ended,
            "queues": queues,
            "size": record.size,
            "skips": record.skips,
        }
        lease = None if self.lease is None else self.lease.number
        self.storage.write(_name(record.number, lease), json.dumps(document, ensure_ascii=False).encode())

    def last_lease(self) -> int:
        """Return the highest number of a lease that a record was written under; 0 if there is none."""
        return max(map(_lease_of, self.storage.list(RECORDS)), default=0)

    def check_lease(self) -> None:
        """Raise ReplayFailed if another run of the job has taken over."""
        if self.lease is not None:
            self.lease.check()

    def records(self) -> dict[int, PartRecord]:
        """Return all records there are."""
        last: dict[int, str] = {}
        for name in sorted(self.storage.list(RECORDS), key=_lease_of):
            last[self._number(name)] = name
        return {record.number: record for record in AT_ONCE.map(self._read, list(last.values()))}

    def end(self) -> dict[str, Any] | None:
        """Return what the job said at its end; None before."""
        if not self.storage.exists(END):
            return None
        try:
            document: dict[str, Any] = dict(value_of(self.storage.read(END)))
            time.gmtime(document["finished_at"])
            _ = [RangeTally.from_wire(wire) for wire in document["queues"]]
        except (KeyError, OSError, OverflowError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self.storage.address(END)} is no end of a job: {flaw(error)}; remove it, and run the job again"
            ) from error
        return document

    def finish(self, document: dict[str, Any]) -> None:
        """Note that everything is done."""
        self.storage.put_if_absent(END, json.dumps(document, ensure_ascii=False).encode())

    def reopen(self) -> None:
        """Take back the end: there is something to do after all."""
        self.storage.delete(END)

    def _read(self, name: str) -> PartRecord:
        try:
            document = value_of(self.storage.read(name))
            tallies = tuple(map(RangeTally.from_wire, document["queues"]))
            record = PartRecord(document["part"], tallies, document["ended"], document["size"], document["skips"])
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{self.storage.address(name)} is no record of a job: {flaw(error)}; remove it") from error
        if not is_stored_number(record.number) or record.number != self._number(name):
            raise StoreError(f"{self.storage.address(name)} is that of part {shown(record.number)}; remove it")
        return record

    def _number(self, name: str) -> int:
        found = RECORD_NAME.fullmatch(name)
        if found is None:
            raise StoreError(f"{self.storage.address(name)} is no record of a job; remove it")
        return int(found[1])


class RunningParts:
    """Counts what the records of parts that have not ended say, beyond what they said before; for progress only."""

    def __init__(self, ledger: Ledger, numbers: Sequence[int], before: Mapping[int, int]) -> None:
        self._ledger = ledger
        self._before = before
        # To look at thousands of records every few seconds would cost more than it tells.
        self._running = set(numbers) if len(numbers) <= MOST_WATCHED else set()

    def ended(self, number: int) -> None:
        """Count a part no more: somebody else does now."""
        self._running.discard(number)

    def __call__(self) -> int:
        """Return how many rows that is; none where the ledger cannot be read just now."""
        try:
            return sum(self._rows(number) for number in sorted(self._running))
        except StreamSortError:
            return 0

    def _rows(self, number: int) -> int:
        record = self._ledger.record(number)
        return 0 if record is None else record.rows - self._before.get(number, 0)


def _name(number: int, lease: int | None = None) -> str:
    return f"{RECORDS}{number:07d}.json" if lease is None else f"{_folder(number)}{lease:07d}.json"


def _folder(number: int) -> str:
    return f"{RECORDS}{number:07d}/"


def _lease_of(name: str) -> int:
    """Return the number of the lease that a record was written under; 0 for one that was written without."""
    found = RECORD_NAME.fullmatch(name)
    return int(found[2]) if found and found[2] else 0
