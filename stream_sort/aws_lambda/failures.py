"""Where a handler failed: the place in the user's code, and the traceback without what an exception may say of data.

Whatever cannot be read of an exception is left out: it is of a stranger's class.
"""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, cast

import stream_sort
from stream_sort.errors import kind_of

if TYPE_CHECKING:
    from types import TracebackType

MOST = 4_000
CUT = "...\n"
# Exceptions that were being handled when the last one was raised; there may be a ring of them.
MOST_CAUSES = 5
OURS = Path(stream_sort.__file__).parent
# Of a layer, that is wherever the local AWS unpacks it; there is no user's code in it.
LAYER = OURS.parent if OURS.parent.name == "python" else OURS
# Lambda's own Python and boto3 beside that, and what other layers bring.
LIBRARIES = (LAYER, Path(sysconfig.get_path("stdlib")), *map(Path, ("/opt/python", "/var/runtime", "/var/lang")))
PACKAGES = {"site-packages", "dist-packages"}


def facts_of(failure: BaseException | None, logged: str) -> dict[str, str]:
    """Return the fields `at` and `traceback` of a log line; none if there is no place. `logged` is the error as logged.

    Of the exceptions before this one, only the kind is named: their messages are logged nowhere else.
    """
    try:
        place = None if failure is None else _place(failure)
        return {} if failure is None or place is None else {"at": place, "traceback": _traceback(failure, logged)}
    except Exception:  # noqa: BLE001  # a log line is not to fail for a stranger's class, or source
        return {}


def _place(error: BaseException) -> str | None:
    """Return file:line and function of the innermost frame in the user's code, else of the innermost one.

    None for an error of ours, which no code of the user's raised.
    """
    frames = traceback.extract_tb(_trace_of(error))
    if all(Path(frame.filename).is_relative_to(OURS) for frame in frames):
        return None
    frame = next((frame for frame in reversed(frames) if _is_users(frame.filename)), frames[-1])
    return f"{PurePath(frame.filename).name}:{frame.lineno} in {frame.name}"


def _is_users(file: str) -> bool:
    path = Path(file)
    is_library = PACKAGES & set(path.parts) or any(path.is_relative_to(library) for library in LIBRARIES)
    return not is_library and not file.startswith("<")


def _traceback(error: BaseException, logged: str) -> str:
    """Return the frames, those of earlier exceptions first, and the error as it is logged; the end of it if long."""
    parts = [_frames(error, logged)]
    before = _before(error)
    while before is not None and len(parts) <= MOST_CAUSES:
        parts.insert(0, _frames(before, kind_of(before)))
        before = _before(before)
    whole = "\n\n".join(parts)
    return whole if len(whole) <= MOST else CUT + whole[len(CUT) - MOST :]


def _frames(error: BaseException, logged: str) -> str:
    frames = "".join(traceback.format_tb(_trace_of(error)))
    return f"Traceback (most recent call last):\n{frames}{logged}"


def _trace_of(error: BaseException) -> TracebackType | None:
    # As Python keeps it: its class may have a property of that name.
    return cast("TracebackType | None", BaseException.__dict__["__traceback__"].__get__(error))


def _before(error: BaseException) -> BaseException | None:
    cause = BaseException.__dict__["__cause__"].__get__(error)
    context = BaseException.__dict__["__context__"].__get__(error)
    hidden = BaseException.__dict__["__suppress_context__"].__get__(error)
    return cast("BaseException | None", cause if hidden else context)
