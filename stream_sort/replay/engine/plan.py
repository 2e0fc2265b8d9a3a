"""What a job has set out to do: fixed once, kept beside its progress, so that whoever resumes does the same.

And what reading it will cost. Knows no job.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stream_sort.errors import SettingsError, StoreError, shown
from stream_sort.replay.files.json_content import flaw, value_of
from stream_sort.replay.ranges import Part, Range, packed, range_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stream_sort.replay.origins.access import TableAccess

VERSION = 1
UNIT_BYTES = 4096


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The options that make a job this very job, its parts, and what was to be said when it was made.

    `ended` are queues that ended before the range that was asked for, and where each did.
    """

    options: Mapping[str, Any]
    parts: tuple[Part, ...]
    made_at: float
    notes: tuple[str, ...] = ()
    ended: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many seqs there are to read."""
        return sum(part.rows for part in self.parts)

    @property
    def id(self) -> str:
        """A name for this plan that no other one has."""
        return hashlib.sha256(self.encode()).hexdigest()[:32]

    def ends(self) -> dict[str, int]:
        """Return how far it goes in each queue."""
        ends: dict[str, int] = {}
        for one in self.ranges():
            ends[one.queue] = max(one.through, ends.get(one.queue, one.through))
        return ends

    def starts(self) -> dict[str, int]:
        """After which seq it begins in each queue."""
        starts: dict[str, int] = {}
        for one in self.ranges():
            starts[one.queue] = min(one.after, starts.get(one.queue, one.after))
        return starts

    def ranges(self) -> Iterable[Range]:
        """Return all ranges of all parts."""
        return (one for part in self.parts for one in part.ranges)

    def encode(self) -> bytes:
        """Return the plan as JSON."""
        parts = [[[one.queue, one.after, one.through] for one in part.ranges] for part in self.parts]
        document = {
            "version": VERSION,
            "made_at": self.made_at,
            "options": dict(self.options),
            "parts": parts,
            "notes": list(self.notes),
        }
        if self.ended:
            document["ended"] = dict(self.ended)
        return json.dumps(document, ensure_ascii=False, sort_keys=True).encode()

    @classmethod
    def decode(cls, content: bytes, where: str) -> JobPlan:
        """Return the plan that `encode` gave; StoreError names `where` it is damaged."""
        try:
            document = value_of(content)
            version = document["version"]
            parts = tuple(
                Part(number, tuple(range_of(*one) for one in ranges)) for number, ranges in enumerate(document["parts"])
            )
            notes, ended = tuple(document.get("notes", ())), {**document.get("ended", {})}
            plan = cls(dict(document["options"]), parts, document["made_at"], notes, ended)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{where} is no plan of a job: {flaw(error)}. Put it back from a backup; a job with another --out or "
                "--checkpoint begins from the start, and delivers once more what this one has delivered"
            ) from error
        if version != VERSION:
            raise StoreError(f"{where} was made by another version of stream_sort; finish the job with that one")
        return plan

    def check(self, options: Mapping[str, Any], where: str) -> None:
        """Raise SettingsError naming each difference if these are not the options it was made with."""
        now = json.loads(json.dumps(dict(options)))
        differing = [name for name in sorted({*now, *self.options}) if now.get(name) != self.options.get(name)]
        if differing:
            told = ", ".join(
                f"--{name.replace('_', '-')} was {shown(self.options.get(name))} and is now {shown(now.get(name))}"
                for name in differing
            )
            out = now.get("out")
            is_beside = bool(out) and where.startswith(out.rstrip("/") + "/")
            another = "--checkpoint" if not out else "--out" if is_beside else "--out and --checkpoint"
            raise SettingsError(
                f"{where} belongs to another job: {told}; give the same options to resume it, or another {another}"
            )


def whole_queues(ranges: Iterable[Range], rows_per_part: int) -> list[Part]:
    """Return parts that no two share a queue, the largest first: what is delivered must wait for what is before it.

    Small queues are packed together; a large one stands alone.
    """
    queues: dict[str, list[Range]] = {}
    for one in sorted(ranges):
        queues.setdefault(one.queue, []).append(one)
    together = packed(queues.values(), _rows, rows_per_part)
    parts = [[one for held in some for one in held] for some in together]
    return [Part(number, tuple(held)) for number, held in enumerate(sorted(parts, key=_rows, reverse=True))]


def _rows(ranges: Iterable[Range]) -> int:
    return sum(map(len, ranges))


@dataclass(frozen=True, slots=True)
class ReadEstimate:
    """Read units, and the average size of an item that they were estimated with; None where nobody knows it."""

    item_bytes: float | None
    read_units: float | None


def estimate(access: TableAccess, ranges: Iterable[Range], *, consistent: bool) -> ReadEstimate:
    """Estimate by what DynamoDB says of the table's size, which it renews every six hours; read no item."""
    told = access.described()
    count, size = told.get("ItemCount") or 0, told.get("TableSizeBytes") or 0
    if not count or not size:
        return ReadEstimate(None, None)
    lengths = [len(one) for one in ranges]
    # Query bills the bytes of a page together, not each item by itself, and at least one unit for each range.
    units = max(sum(lengths) * (size / count) / UNIT_BYTES, float(len(lengths)))
    return ReadEstimate(size / count, units if consistent else units / 2)
