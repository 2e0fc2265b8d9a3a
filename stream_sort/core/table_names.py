"""What a table can be called. Knows no SDK."""

from __future__ import annotations

import re

from stream_sort.errors import SettingsError, shown

TABLE_NAME = re.compile(r"[A-Za-z0-9_.:/-]{3,1024}")


def check_table_name(name: object) -> str:
    """A name that a table can have."""
    if not isinstance(name, str) or not TABLE_NAME.fullmatch(name):
        raise SettingsError(f"table name {shown(name)}: must be the name or the ARN of a DynamoDB table")
    return name
