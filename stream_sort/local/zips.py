"""Folders of code as zip files, the same bytes for the same files whoever makes them."""

from __future__ import annotations

import zipfile
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# What a zip file can hold for a time.
LONG_AGO = (1980, 1, 1, 0, 0, 0)


def zipped(folder: Path) -> bytes:
    """Return a zip file of what is in a folder. Nothing is compressed: it stays on this machine, and is read often."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(str(path.relative_to(folder)), LONG_AGO)
                entry.external_attr = 0o644 << 16
                file.writestr(entry, path.read_bytes())
    return packed.getvalue()
