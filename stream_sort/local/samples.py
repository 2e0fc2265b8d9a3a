"""Sample events name tables that no stack has; here they get the names of the stack they are sent to."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

# The tables in events/, and the outputs that hold the real names.
TABLES = {"stream-sort-items": "ItemsTable", "stream-sort-cursor": "CursorTable"}


def with_names_of(outputs: Mapping[str, str], event: Any) -> Any:
    """The event with the samples' tables renamed; whatever else it holds, or is, stays as it is."""
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
