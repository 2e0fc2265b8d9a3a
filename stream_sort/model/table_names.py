"""What a table can be called. Knows no SDK."""

from __future__ import annotations

import re
from string import ascii_letters, digits

from stream_sort.errors import SettingsError, shown

ALLOWED = frozenset(ascii_letters + digits + "_.:/-")
TABLE_NAME = re.compile(r"[A-Za-z0-9_.:/-]{3,1024}")


def check_table_name(name: object) -> str:
    """Return a name that a table can have, or raise SettingsError."""
    if not isinstance(name, str) or not TABLE_NAME.fullmatch(name):
        problem = f"must be the name or the ARN of a DynamoDB table; {_problem(name)}"
        raise SettingsError(f"table name {shown(name)}: {problem}")
    return name


def _problem(name: object) -> str:
    if not isinstance(name, str):
        return "it is no text"
    strange = next((one for one in name if one not in ALLOWED), None)
    if strange is not None:
        return f"it has {strange!r}, and may have letters, digits, _, - and . only"
    if not name:
        return "it is empty"
    return f"it has {len(name):,} character{'' if len(name) == 1 else 's'}, and must have 3 to 255"
