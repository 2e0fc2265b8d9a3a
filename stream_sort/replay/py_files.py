"""The package as one zip file, for `spark-submit --py-files`: executors import a zip, a wheel only the driver does.

`python -m stream_sort.replay.py_files stream_sort.zip` writes it. Needs nothing but Python.
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PACKAGE = Path(__file__).parents[1]
# The earliest time that a zip can hold: the same sources make the same bytes, whenever they were written.
LONG_AGO = (1980, 1, 1, 0, 0, 0)
READABLE = 0o100644 << 16


def write_zip(target: Path) -> list[str]:
    """Write the package's modules under `stream_sort/`; same sources, same bytes. Returns the names in it."""
    files = sorted(file for file in PACKAGE.rglob("*") if file.suffix == ".py" or file.name == "py.typed")
    names = [file.relative_to(PACKAGE.parent).as_posix() for file in files]
    target.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(target, "w") as bundle:
        for name, file in sorted(zip(names, files, strict=True)):
            entry = ZipInfo(name, LONG_AGO)
            entry.external_attr = READABLE
            entry.create_system = 3  # Unix, on whatever system it is written
            bundle.writestr(entry, file.read_bytes(), ZIP_DEFLATED)
    return sorted(names)


def main() -> None:
    """Write the zip that the command line names."""
    if len(sys.argv) != 2:  # noqa: PLR2004  # the module and the file
        sys.exit("usage: python -m stream_sort.replay.py_files FILE.zip")
    target = Path(sys.argv[1])
    written = write_zip(target)
    sys.stdout.write(f"{target}: {len(written)} files, {target.stat().st_size // 1024} KB\n")


if __name__ == "__main__":
    main()
