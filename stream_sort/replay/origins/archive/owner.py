"""Whose history an archive holds. A table that was deleted and made anew is another one: it has other messages."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from stream_sort.errors import ArchiveDamaged, FileMissing, SettingsError, shown
from stream_sort.replay.files.json_content import value_of
from stream_sort.replay.origins.access import PATIENCE
from stream_sort.replay.origins.archive.manifest import LOST, QUEUES

if TYPE_CHECKING:
    from stream_sort.replay.files.storage import Storage
    from stream_sort.replay.origins.access import TableAccess

FORMAT = "stream_sort archive owner"
VERSION = 1
NAME = "owner.json"


@dataclass(frozen=True, slots=True)
class Owner:
    """An items table: its ARN, and what tells it from others that had or will have its name."""

    arn: str
    table_id: str

    @classmethod
    def of(cls, access: TableAccess) -> Owner:
        """Return the items table that is there now."""
        told = access.described(PATIENCE)
        made = told["CreationDateTime"]
        return cls(told["TableArn"], told.get("TableId") or f"made at {made.timestamp():.3f}")

    def __str__(self) -> str:
        return f"{self.arn} ({self.table_id})"

    def text(self) -> bytes:
        """Return the owner as it is stored."""
        return (json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)}, indent=1) + "\n").encode()

    def check(self, storage: Storage) -> None:
        """Raise SettingsError if the archive is another table's, or its place has files and does not say whose."""
        there = _stored(storage)
        if there is None:
            held = storage.some_name()
            # Once more: its first run may have begun between the two.
            there = None if held is None else _stored(storage)
            if held is not None and there is None:
                raise SettingsError(self._strange(storage, held))
        if there is not None and there != self:
            raise SettingsError(
                f"the archive {storage.uri} is not that of {self}: it is the archive of {there}. Begin another one. "
                "Only if the table was restored from that one, to a time after the last run of archive, and that one "
                f"takes no more messages, write the ARN and the id of the new one into {NAME} instead"
            )

    def _strange(self, storage: Storage, held: str) -> str:
        if storage.list(QUEUES):
            return (
                f"the archive {storage.uri} does not say whose it is: {NAME} is missing. Put it back, or begin another "
                f"archive for {self}"
            )
        return (
            f"{storage.uri} is no archive, and not empty: it holds {shown(held)}. Give the address of the archive, "
            "or an empty place to begin one"
        )

    def claim(self, storage: Storage) -> None:
        """Write down whose the archive is; SettingsError if somebody else was first."""
        if not storage.put_if_absent(NAME, self.text()):
            self.check(storage)


def _stored(storage: Storage) -> Owner | None:
    try:
        document = value_of(storage.read(NAME))
        kind = document["format"], document["version"]
        owner = Owner(document["arn"], document["table_id"])
    except FileMissing:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveDamaged(
            storage.address(NAME), f"it does not say whose the archive is ({error}); {LOST}"
        ) from error
    if kind != (FORMAT, VERSION):
        raise ArchiveDamaged(storage.address(NAME), f"its format is {kind[0]!r} version {kind[1]!r}, not {VERSION}")
    return owner
