"""The outcome of an audit: as a report, and queue by queue as Parquet or JSON lines."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from stream_sort.model.message import MAX_SEQ
from stream_sort.replay.audit.findings import KINDS
from stream_sort.replay.engine.report import JobReport, some_notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from stream_sort.replay.audit.findings import AuditFinding
    from stream_sort.replay.audit.queues import QueueAudit
    from stream_sort.replay.files.storage import Storage

WORST = 50
# Findings that the report for people tells of.
TOLD = 10
MOST_FINDINGS = 1_000
QUEUES_A_FILE = 50_000
COLUMNS = ("queue", "messages", "first", "last", "position", "gaps", "missing", "lag", "findings")
SEQS = pa.struct([pa.field("first", pa.int64(), nullable=False), pa.field("last", pa.int64(), nullable=False)])
DETAIL = pa.schema(
    [
        pa.field("queue", pa.string(), nullable=False),
        *(pa.field(name, pa.int64()) for name in ("messages", "tombstones", "late", "duplicates", "conflicts")),
        *(pa.field(name, pa.int64()) for name in ("first", "last", "first_seq", "position", "trimmed_through")),
        pa.field("missing", pa.int64(), nullable=False),
        pa.field("gaps", pa.list_(SEQS), nullable=False),
        pa.field("lag", pa.map_(pa.string(), pa.int64()), nullable=False),
        pa.field("findings", pa.list_(pa.string()), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit has found. Complete is what has no finding that was not repaired."""

    source: str
    queues: Sequence[QueueAudit]
    findings: Sequence[AuditFinding]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything is there, once, and where it should be."""
        return all(finding.repaired for finding in self.findings)

    def totals(self) -> dict[str, Any]:
        """Return sums over all queues, and how many queues have a finding of each kind."""
        kinds = Counter(kind for _, kind in {(finding.queue, finding.kind) for finding in self.findings})
        gaps = [gap for queue in self.queues for gap in queue.gaps()]
        return {
            "queues": len(self.queues),
            "messages": sum(queue.messages for queue in self.queues),
            "tombstones": sum(queue.tombstones for queue in self.queues),
            "late": sum(queue.late for queue in self.queues),
            "gaps": len(gaps),
            "missing": sum(gap.stop - gap.start for gap in gaps),
            "duplicates": sum(queue.duplicates - queue.conflicts for queue in self.queues),
            "conflicts": sum(queue.conflicts for queue in self.queues),
            "no_slot": sum(queue.no_slot for queue in self.queues),
            "repaired": sum(finding.repaired for finding in self.findings),
            "queues_with": {kind: kinds[kind] for kind in KINDS if kinds[kind]},
            "lag": self._lag(),
        }

    def report(self) -> JobReport:
        """Return the report; `audit.job` says what stands in its JSON."""
        kinds, totals, lag = self._kinds(), self.totals(), self._lag()
        rows = [_row(queue, kinds.get(queue.queue, [])) for queue in self._worst()]
        counts = totals["queues_with"].items()
        return JobReport(
            job="audit",
            complete=self.complete,
            columns=COLUMNS,
            queues=rows,
            totals={name: value for name, value in totals.items() if not isinstance(value, dict)},
            seconds=self.seconds,
            notes=(
                *self.notes,
                *(f"{count:,} queue{'' if count == 1 else 's'}: {KINDS[kind]}" for kind, count in counts),
                *(f"consumer {name}: {behind:,} behind" for name, behind in lag.items()),
                *self._describe(),
            ),
            wire={
                "source": self.source,
                "complete": self.complete,
                **totals,
                "findings": [finding.document() for finding in self.findings[:MOST_FINDINGS]],
                "findings_left_out": max(0, len(self.findings) - MOST_FINDINGS),
                "worst": rows,
                "notes": list(self.notes),
                "seconds": round(self.seconds, 3),
            },
            worst="".join(f"queue {one.queue!r}: {one.line}" for one in self.findings[:1]),
        )

    def _describe(self) -> tuple[str, ...]:
        """Return the worst findings, each with what to do about it, and where the others are."""
        open_ones = [finding for finding in self.findings if not finding.repaired]
        told = [f"queue {one.queue!r}: {one.line}" if one.queue else one.line for one in open_ones]
        return some_notes(told, "{} more findings: see --json, --out or --detail", TOLD)

    def write_detail(self, storage: Storage, form: str) -> None:
        """Write one row for each queue, all its gaps with it, in files of the form `parquet` or `json`."""
        kinds = self._kinds()
        for number, start in enumerate(range(0, len(self.queues), QUEUES_A_FILE)):
            rows = [_detail(queue, kinds.get(queue.queue, [])) for queue in self.queues[start : start + QUEUES_A_FILE]]
            content = _parquet(rows) if form == "parquet" else _lines(rows)
            storage.write(f"part-{number:05d}.{form}", content)

    def _kinds(self) -> dict[str, list[str]]:
        kinds: dict[str, list[str]] = {}
        for finding in self.findings:
            kinds.setdefault(finding.queue, []).append(finding.kind + (" (repaired)" if finding.repaired else ""))
        return kinds

    def _worst(self) -> list[QueueAudit]:
        """Return queues with findings, in the order of these, then those with the most lag."""
        by_name = {queue.queue: queue for queue in self.queues}
        named = dict.fromkeys(finding.queue for finding in self.findings if finding.queue in by_name)
        lagging = sorted((queue for queue in self.queues if _lag(queue)), key=lambda one: (-_lag(one), one.queue))
        names = [*named, *(queue.queue for queue in lagging)]
        return [by_name[name] for name in dict.fromkeys(names)][:WORST]

    def _lag(self) -> dict[str, int]:
        total: Counter[str] = Counter()
        for queue in self.queues:
            total.update({name: max(0, lag) for name, lag in queue.lag().items()})
        return dict(sorted(total.items()))


def _lag(queue: QueueAudit) -> int:
    return max([0, *queue.lag().values()])


def _row(queue: QueueAudit, kinds: Sequence[str]) -> dict[str, Any]:
    """Return a queue's row in the table and in the JSON; without its gaps, of which there may be millions."""
    gaps = queue.gaps()
    return {
        "queue": queue.queue,
        "messages": queue.messages,
        "tombstones": queue.tombstones,
        "late": queue.late,
        "first": queue.first,
        "last": queue.last,
        "position": queue.position,
        "gaps": len(gaps),
        "missing": sum(gap.stop - gap.start for gap in gaps),
        "duplicates": queue.duplicates - queue.conflicts,
        "conflicts": queue.conflicts,
        "lag": _lag(queue),
        "findings": ", ".join(kinds),
    }


def _detail(queue: QueueAudit, kinds: Sequence[str]) -> dict[str, Any]:
    gaps = [{"first": gap.start, "last": gap.stop - 1} for gap in queue.gaps()]
    own = {"first_seq": queue.first_seq, "trimmed_through": queue.trimmed_through, "lag": queue.lag()}
    return _row(queue, kinds) | own | {"gaps": gaps, "findings": list(kinds)}


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    sink = BytesIO()
    # A gap may be longer than the column can tell; `gaps` has its ends.
    held = [{**row, "lag": list(row["lag"].items()), "missing": min(row["missing"], MAX_SEQ)} for row in rows]
    pq.write_table(pa.Table.from_pylist(held, schema=DETAIL), sink, compression="zstd")
    return sink.getvalue()


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    def lines() -> Iterator[str]:
        for row in rows:
            yield json.dumps({name: row[name] for name in DETAIL.names}, ensure_ascii=False) + "\n"

    return "".join(lines()).encode()
