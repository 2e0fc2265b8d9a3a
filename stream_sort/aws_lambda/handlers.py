"""The handler of `process`, as the settings give it: a sink, or a user's own by its name, `module:function`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from stream_sort.consume.handler import check_handler
from stream_sort.errors import SettingsError, shown
from stream_sort.settings import SinkSettings
from stream_sort.sinks import make_sink

if TYPE_CHECKING:
    from stream_sort.consume.handler import Handler


def handler_from_env() -> Handler:
    """Return the user's handler that the STREAM_SORT_* variables name, else their sink."""
    settings = SinkSettings.from_env()
    return load_handler(settings.handler) if settings.handler else make_sink(settings)


def load_handler(name: str) -> Handler:
    """Import a handler; SettingsError that says what is wrong with its name, its module or the function."""
    module_name, colon, path = name.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module_name.split("."), *path.split("."))):
        raise SettingsError(f"handler is {shown(name)}; it must be module:function, such as my_handler:handle")
    found = _import(module_name)
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise SettingsError(f"handler is {name!r}, but module {module_name!r} has no {path!r}")
    try:
        return check_handler(found)
    except SettingsError as error:
        raise SettingsError(f"handler is {name!r}: {error}") from None


def _import(name: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name + ".").startswith(error.name + "."):
            raise SettingsError(
                f"no module {name!r} for the handler; it must lie beside app.py of the function, or in a layer"
            ) from error
        raise SettingsError(f"the handler's module {name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        # Whatever a stranger's module does while it is imported.
        raise SettingsError(
            f"the handler's module {name!r} fails at import: {type(error).__name__}: {error}"
        ) from error
