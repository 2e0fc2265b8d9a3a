"""The options of an audit. Knows neither tables nor Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.errors import SettingsError
from stream_sort.model.message import check_queue
from stream_sort.replay.engine.options import JobParser, Source, add_running, add_source, place_name, source_of
from stream_sort.replay.engine.report import check_report_file, is_there
from stream_sort.replay.selection import seq_number

if TYPE_CHECKING:
    import argparse

FORMS = ("parquet", "json")
TABLES = ("items_table", "cursor_table", "control_table")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """What is to be audited, and how; `queues` None is all of them, `first_seq` is where those start that never did."""

    source: Source
    queues: tuple[str, ...] | None = None
    consistent: bool = True
    max_read_units: float | None = None
    repair: bool = False
    quiet: bool = True
    first_seq: int = 0

    def __post_init__(self) -> None:
        if self.source.kind != "table" and self.repair:
            raise SettingsError(f"--repair advances queues of live tables; {self.source} has no cursors to move")
        if self.source.kind != "table" and self.max_read_units is not None:
            raise SettingsError("--max-read-units is for tables; an export or an archive costs no read units")
        if self.source.kind != "table" and not self.consistent:
            raise SettingsError("--eventual is for tables; an export or an archive is what it is")
        missing = [name for name in TABLES if not getattr(self.source, name)]
        if self.source.kind == "archive" and missing and len(missing) < len(TABLES):
            told = "tables beside an archive tell what it must hold; name all three, or none"
            raise SettingsError(f"{_option(missing[0])} is missing: {told}")


def audit_parser() -> JobParser:
    """Return the parser of the command."""
    parser = JobParser(
        "audit",
        "Check that every queue is complete: nothing missing, nothing twice, nothing stuck.",
        "stream-sort audit --stack orders --detail gaps",
    )
    add_source(parser)
    add_running(parser)
    group = parser.add_argument_group("audit")
    group.add_argument("--queue", action="append", metavar="NAME", help="only this queue; may be given often")
    group.add_argument(
        "--out", type=place_name, metavar="FILE", help="write the report there, as JSON; the same as --report"
    )
    group.add_argument(
        "--detail", type=place_name, metavar="URI", help="write one row a queue, with all its gaps, there"
    )
    group.add_argument("--detail-format", choices=FORMS, help=f"the form of the detail ({FORMS[0]})")
    group.add_argument("--repair", action="store_true", help="advance the queues that are stuck")
    group.add_argument("--yes", "-y", action="store_true", help="repair without asking; a script never asks")
    group.add_argument(
        "--first-seq", metavar="SEQ", help="where queues start (0) that never began; or STREAM_SORT_FIRST_SEQ"
    )
    return parser


def options_of(given: argparse.Namespace) -> AuditOptions:
    """Return the options that were given; what could not be written at the end is refused now."""
    check_report_file(given.out, "--out")
    check_report_file(given.report)
    if given.detail and "://" not in given.detail and is_there(given.detail, "--detail", Path.is_file):
        raise SettingsError(f"--detail {given.detail} is a file; name a folder")
    if given.detail_format and not given.detail:
        raise SettingsError("--detail-format is the form of what --detail writes; give both, or neither")
    source = source_of(given)
    _check_beside(given, source.kind)
    return AuditOptions(
        source=source,
        queues=tuple(dict.fromkeys(map(check_queue, given.queue))) if given.queue else None,
        consistent=not given.eventual,
        max_read_units=given.max_read_units,
        repair=given.repair,
        quiet=given.quiet,
        first_seq=seq_number(given.first_seq or "0", "--first-seq"),
    )


def reports_of(given: argparse.Namespace) -> list[str]:
    """Return the files that the report goes to."""
    return [path for path in dict.fromkeys((given.out, given.report)) if path]


def _check_beside(given: argparse.Namespace, kind: str) -> None:
    """Raise for what files have no use for; what a stack has told was not asked for."""
    unused = {"table": (), "export": (*TABLES, "first_seq"), "archive": ("first_seq",)}[kind]
    for name in () if given.stack else unused:
        if getattr(given, name):
            raise SettingsError(f"{_option(name)} is of no use beside --{kind}; leave it out")


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
