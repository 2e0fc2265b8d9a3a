"""The serverless app as this machine has it, in a checkout or in the wheel: its sources, and its sample events."""

from __future__ import annotations

import shutil
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stream_sort.errors import LocalStackFailed
from stream_sort.local.tools import find_uv

if TYPE_CHECKING:
    from collections.abc import Mapping

PARTS = ("template.yaml", "Makefile", "functions")
# The folder of the package in which the wheel has what stands beside the package in a checkout; see pyproject.toml.
WHEEL_APP = "app"
# The tables in events/, and the outputs that hold the real names.
TABLES = {"stream-sort-items": "ItemsTable", "stream-sort-cursor": "CursorTable"}


def project_root() -> Path:
    """Return the folder with template.yaml and the functions.

    The checkout that this package is in, else the working directory if it is a checkout, else what the wheel brought.
    """
    places = [Path(__file__).parents[2], Path.cwd(), _wheel_app()]
    for place in places:
        if all((place / part).exists() for part in PARTS):
            return place
    raise LocalStackFailed(
        f"no template.yaml with its functions in {' or '.join(map(str, places))}; the local stack deploys them: "
        "run this in a checkout of stream_sort, or install its wheel"
    )


def has_app() -> bool:
    """Return True if a local stack can be brought up from here."""
    try:
        project_root()
    except LocalStackFailed:
        return False
    return True


def is_from_wheel() -> bool:
    """Return True if the app is the wheel's, and no checkout is in reach."""
    return project_root() == _wheel_app()


def source_folder(home: Path) -> Path:
    """Return the folder that sam builds from: the checkout, or a copy in `home` of the wheel's files, laid out as one.

    sam and make write beside the sources, and an installed package is not to be written to.
    """
    if not is_from_wheel():
        return project_root()
    folder, package = home / "sources", Path(__file__).parents[1]
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(project_root(), folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__", WHEEL_APP))
    # The Makefile would install a uv of its own there.
    uv = folder / ".tools" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.symlink_to(find_uv())
    return folder


def _wheel_app() -> Path:
    return Path(__file__).parents[1] / WHEEL_APP


def with_names_of(outputs: Mapping[str, str], event: Any) -> Any:
    """Return an event with the tables of this stack in place of those of the samples; all else stays as it is."""
    fitted = deepcopy(event)
    records = fitted.get("Records") if isinstance(fitted, dict) else None
    for record in records if isinstance(records, list) else ():
        arn = record.get("eventSourceARN") if isinstance(record, dict) else None
        if isinstance(arn, str):
            head, _, rest = arn.partition(":table/")
            table, slash, stream = rest.partition("/")
            if table in TABLES:
                record["eventSourceARN"] = f"{head}:table/{outputs[TABLES[table]]}{slash}{stream}"
    return fitted
