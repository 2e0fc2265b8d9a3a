"""An archive of the tables of a test: its options, its files, and what an audit says of it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from stream_sort.replay.archive.job import ArchiveOptions
from stream_sort.replay.audit.job import audit
from stream_sort.replay.audit.options import AuditOptions
from stream_sort.replay.engine.source import Source
from stream_sort.replay.files.storage import Storage

if TYPE_CHECKING:
    from pathlib import Path

    from stream_sort import StreamSorter
    from stream_sort.replay.audit.report import AuditResult
    from stream_sort.replay.origins.access import TableAccess


def archive_in(folder: Path, access: TableAccess, sorter: StreamSorter) -> ArchiveOptions:
    """With a control table of its own, and segments of ten rows."""
    control = f"control-{uuid.uuid4().hex[:12]}"
    sorter.stores.control(control).create_table()
    return ArchiveOptions(access, control, Storage(str(folder / "archive")), segment_rows=10)


def files(options: ArchiveOptions) -> dict[str, bytes]:
    return {name: options.storage.read(name) for name in options.storage.list()}


def audited(options: ArchiveOptions, *queues: str) -> AuditResult:
    """The audit of an archive with its tables at hand."""
    access = options.access
    names = (access.items_table, access.cursor_table, options.control_table)
    place = {"endpoint_url": access.endpoint_url, "region": access.region}
    return audit(AuditOptions(Source(*names, archive=options.storage.uri, **place), queues=queues or None))
