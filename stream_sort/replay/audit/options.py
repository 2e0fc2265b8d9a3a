"""The options of an audit as values, and which of them go together. Knows neither tables nor Spark."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stream_sort.errors import SettingsError
from stream_sort.model.message import check_queue
from stream_sort.replay.engine.command import check_report_file, is_there
from stream_sort.replay.engine.options import TABLES, option_name
from stream_sort.replay.engine.source import Source, check_unused
from stream_sort.replay.ranges import seq_number

if TYPE_CHECKING:
    import argparse


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
        self.source.check_reading(max_read_units=self.max_read_units, consistent=self.consistent)
        missing = [name for name in TABLES if not getattr(self.source, name)]
        if self.source.kind == "archive" and missing and len(missing) < len(TABLES):
            told = "tables beside an archive tell what it must hold; name all three, or none"
            raise SettingsError(f"{option_name(missing[0])} is missing: {told}")

    @classmethod
    def of(cls, given: argparse.Namespace) -> AuditOptions:
        """Return the options that were given; what could not be written at the end is refused now."""
        check_report_file(given.out, "--out")
        check_report_file(given.report)
        if given.detail and "://" not in given.detail and is_there(given.detail, "--detail", Path.is_file):
            raise SettingsError(f"--detail {given.detail} is a file; name a folder")
        if given.detail_format and not given.detail:
            raise SettingsError("--detail-format is the form of what --detail writes; give both, or neither")
        source = Source.of(given)
        check_unused(given, (*TABLES, "first_seq") if source.kind == "export" else ("first_seq",))
        return cls(
            source=source,
            queues=tuple(dict.fromkeys(map(check_queue, given.queue))) if given.queue else None,
            consistent=not given.eventual,
            max_read_units=given.max_read_units,
            repair=given.repair,
            quiet=given.quiet,
            first_seq=seq_number(given.first_seq or "0", "--first-seq"),
        )
