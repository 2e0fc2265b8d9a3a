"""Makes point-in-time exports as DynamoDB writes them, to be read and to be damaged."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stream_sort.stores.dynamodb.values import encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ID = "01693685827463-2d8752fd"


@dataclass(frozen=True, slots=True)
class MadeExport:
    """An export on disk, below what would be its bucket."""

    bucket: Path
    folder: Path

    def data(self) -> list[Path]:
        return sorted((self.folder / "data").iterdir())

    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "manifest-files.json").read_text().splitlines()]

    def set_rows(self, rows: Iterable[dict[str, Any]]) -> None:
        (self.folder / "manifest-files.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (self.folder / "manifest-files.md5").unlink(missing_ok=True)

    def set_summary(self, **changes: Any) -> None:
        path = self.folder / "manifest-summary.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
        (self.folder / "manifest-summary.md5").unlink(missing_ok=True)

    def replace(self, name: str, content: bytes, items: int) -> None:
        """Put another content into a data file, and its checksum into the manifest."""
        (self.folder / "data" / name).write_bytes(content)
        rows = [
            row | {"md5Checksum": md5(content), "itemCount": items} if row["dataFileS3Key"].endswith(name) else row
            for row in self.rows()
        ]
        self.set_rows(rows)
        self.set_summary(itemCount=sum(row["itemCount"] for row in rows))


def make_export(bucket: Path, files: Iterable[Iterable[dict[str, Any]]], prefix: str = "") -> MadeExport:
    """Write items (see `item`), file by file."""
    folder = bucket / prefix / "AWSDynamoDB" / ID
    (folder / "data").mkdir(parents=True)
    home = f"{prefix}/AWSDynamoDB/{ID}" if prefix else f"AWSDynamoDB/{ID}"
    rows = []
    for number, items in enumerate(files):
        lines = [json.dumps({"Item": one}, separators=(",", ":"), ensure_ascii=False) for one in items]
        content = gzip.compress("".join(line + "\n" for line in lines).encode(), compresslevel=1, mtime=0)
        name = f"{number:04d}abcdefghijklmnop.json.gz"
        (folder / "data" / name).write_bytes(content)
        etag = hashlib.md5(hashlib.md5(content).digest()).hexdigest() + "-1"
        key = f"{home}/data/{name}"
        rows.append({"itemCount": len(lines), "md5Checksum": md5(content), "etag": etag, "dataFileS3Key": key})
    made = MadeExport(bucket, folder)
    summary = {
        "version": "2020-06-30",
        "exportArn": f"arn:aws:dynamodb:eu-west-1:123456789012:table/Items/export/{ID}",
        "tableArn": "arn:aws:dynamodb:eu-west-1:123456789012:table/Items",
        "exportTime": "2026-01-31T12:00:00Z",
        "s3Bucket": "exports",
        "s3Prefix": prefix or None,
        "manifestFilesS3Key": f"{home}/manifest-files.json",
        "itemCount": sum(row["itemCount"] for row in rows),
        "outputFormat": "DYNAMODB_JSON",
        "exportType": "FULL_EXPORT",
    }
    (folder / "manifest-summary.json").write_text(json.dumps(summary))
    made.set_rows(rows)
    for name in ("manifest-summary", "manifest-files"):
        (folder / f"{name}.md5").write_text(md5((folder / f"{name}.json").read_bytes()))
    return made


def item(queue: str, seq: int, at: int | None = 1_700_000_000_000, **fields: Any) -> dict[str, Any]:
    """A message as an export holds it; a tombstone with `_ss_skipped`."""
    wire, _ = encode({"queue": queue, "seq": seq, **fields})
    return wire if at is None else wire | {"_ss_at": {"N": str(at)}}


def md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content).digest()).decode()
