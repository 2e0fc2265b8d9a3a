"""Whether the files that a job names are there, and those it will write can be written: before Spark starts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from stream_sort.errors import InvalidInput, SettingsError
from stream_sort.replay.files.storage import Storage
from stream_sort.replay.origins.archive.manifest import QUEUES
from stream_sort.replay.origins.archive.owner import NAME

if TYPE_CHECKING:
    from stream_sort.replay.engine.options import Source


def check_readable(source: Source) -> None:
    """Raise unless the export or the archive of a source is there; tables are asked when they are read."""
    if source.kind == "table":
        return
    storage = Storage(source.export or source.archive, endpoint_url=source.endpoint_url, region=source.region)
    if source.kind == "export":
        # Loads what only exports need.
        from stream_sort.replay.origins.export.manifest import open_export  # noqa: PLC0415

        open_export(storage)
    # One small file first: to list an archive takes a while.
    elif not storage.exists(NAME) and not storage.list(QUEUES):
        raise InvalidInput(f"there is no archive at {storage.uri}: check the address")


def check_writable(option: str, uri: str) -> None:
    """Raise SettingsError if a folder of this machine takes no file; leaves nothing there. Buckets are not tried."""
    where = Storage(uri).canonical
    if "://" in where:
        return
    folder, made = Path(where), list[Path]()
    try:
        made += [one for one in (folder, *folder.parents) if not one.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SettingsError(f"{option} {uri}: it cannot be written to: {error.strerror}") from error
    finally:
        for one in made:
            with suppress(OSError):
                one.rmdir()
