"""Results: typed values that print themselves, and show themselves as tables in notebooks."""

import dataclasses
import html
import json
import operator
import os
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from . import _native

if TYPE_CHECKING:
    from typing_extensions import CapsuleType
else:
    CapsuleType = object

T = TypeVar("T")

Progress = typing.Callable[[str, int, int | None], object]
"""A function that the caller passes. This package calls it with the stage's name, the finished work, and the
total or ``None``."""


def parse(kind: type[T], text: str, **more: object) -> T:
    """Parses a JSON document as a value of type ``kind``. The fields ``more`` are not in the document."""
    document = json.loads(text)
    value: T = _build(kind, document | more if more else document)
    return value


class Tabular:
    """A result with a table of its rows. Polars, pandas, DuckDB, pyarrow and all other libraries with Arrow's
    interface can read the table."""

    table: _native.Table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType:
        return self.table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> CapsuleType:
        return self.table.__arrow_c_schema__()


def _build(kind: Any, value: Any) -> Any:
    """Converts plain values to type ``kind``."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return typing.cast(Any, kind)(**{key: _build(hints.get(key), part) for key, part in value.items()})
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType or origin is typing.Union:
        return None if value is None else _build(parts[0], value)
    if origin is tuple and len(parts) == 2 and parts[1] is ...:
        return tuple(_build(parts[0], part) for part in value)
    if origin is tuple:
        return tuple(_build(part_kind, part) for part_kind, part in zip(parts, value, strict=True))
    return value


def listed(name: str, values: Iterable[T]) -> list[T]:
    """Checks that the argument ``name`` is a list. Refuses a text or a path, because Python would iterate
    over its letters."""
    if isinstance(values, str | bytes | os.PathLike):
        raise TypeError(f"{name} is a list: write [{values!r}]")
    return list(values)


def whole(name: str, value: object) -> int:
    """Checks that the argument ``name`` is a number. NumPy's integers are numbers. A text is not a number."""
    try:
        return operator.index(typing.cast(typing.SupportsIndex, value))
    except TypeError:
        raise TypeError(f"{name} is a whole number, not {value!r}") from None


def settings_list(settings: Mapping[str, int | Sequence[int]] | None) -> list[str]:
    """Returns the settings in the command's form: ``KEY=VALUE[,VALUE]``."""

    def values(key: str, value: int | Sequence[int]) -> str:
        several = value if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
        return ",".join(str(whole(key, one)) for one in several)

    return [f"{key}={values(key, value)}" for key, value in (settings or {}).items()]


def text_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Formats a table for a terminal. Aligns the first column to the left, and the other columns to the
    right."""
    lines = [list(columns), *([_cell(cell) for cell in row] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]

    def aligned(line: list[str]) -> str:
        cells = (cell.rjust(width) if at else cell.ljust(width) for at, (cell, width) in enumerate(zip(line, widths)))
        return "  ".join(cells).rstrip()

    return "\n".join(map(aligned, lines))


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Formats a table for a notebook."""

    def line(tag: str, cells: Iterable[object]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(_cell(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return (
        f"<table><caption>{html.escape(caption)}</caption>"
        f"<thead>{line('th', columns)}</thead><tbody>{body}</tbody></table>"
    )


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)
