"""The options of an audit. Knows neither tables nor Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.core.message import check_queue
from stream_sort.errors import SettingsError
from stream_sort.replay.jobs.options import JobParser, Source, add_running, add_source, source_of
from stream_sort.replay.jobs.report import check_report_file

if TYPE_CHECKING:
    import argparse

FORMS = ("parquet", "json")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What is to be audited, and how; `queues` None is all of them."""

    source: Source
    queues: tuple[str, ...] | None = None
    consistent: bool = True
    max_read_units: float | None = None
    repair: bool = False
    quiet: bool = True

    def __post_init__(self) -> None:
        if self.source.kind != "table" and self.repair:
            raise SettingsError(f"--repair advances queues of live tables; {self.source} has no cursors to move")
        if self.source.kind != "table" and self.max_read_units is not None:
            raise SettingsError("--max-read-units is for tables; an export or an archive costs no read units")


def audit_parser() -> JobParser:
    """The parser of the command."""
    parser = JobParser("audit", "Check that every queue is complete: nothing missing, nothing twice, nothing stuck.")
    add_source(parser)
    add_running(parser)
    group = parser.add_argument_group("audit")
    group.add_argument("--queue", action="append", metavar="NAME", help="only this queue; may be given often")
    group.add_argument(
        "--out", default="", metavar="FILE", help="write the report there, as JSON; the same as --report"
    )
    group.add_argument("--detail", default="", metavar="URI", help="write one row a queue, with all its gaps, there")
    group.add_argument("--detail-format", choices=FORMS, default=FORMS[0], help="the form of the detail (%(default)s)")
    group.add_argument("--repair", action="store_true", help="advance the queues that are stuck")
    return parser


def options_of(given: argparse.Namespace) -> AuditOptions:
    """The options that were given; what could not be written at the end is refused now."""
    for path in reports_of(given):
        check_report_file(path)
    if given.detail and "://" not in given.detail and Path(given.detail).is_file():
        raise SettingsError(f"--detail {given.detail} is a file; name a folder")
    return AuditOptions(
        source=source_of(given),
        queues=tuple(dict.fromkeys(map(check_queue, given.queue))) if given.queue else None,
        consistent=not given.eventual,
        max_read_units=given.max_read_units,
        repair=given.repair,
        quiet=given.quiet,
    )


def reports_of(given: argparse.Namespace) -> list[str]:
    """The files that the report goes to."""
    return [path for path in dict.fromkeys((given.out, given.report)) if path]
