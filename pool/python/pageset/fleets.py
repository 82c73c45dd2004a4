"""Advice for many recordings of one load: which recordings say Yes, the worst first."""

import html
import os
from dataclasses import dataclass, field

from . import _native
from .document import Progress, Tabular, html_table, parse, text_table

_COLUMNS = ["recording", "answer", "saves at least %", "at most %", "visits/s", "advised, or why not"]


@dataclass(frozen=True)
class FleetLine:
    """The answer for one recording."""

    recording: str
    """The name of the recording's file."""
    answer: str | None
    """Yes, No or unknown; ``None`` if the recording could not be read."""
    advised: str | None
    """The setting or kernel that is advised."""
    saved_percent_least: float | None
    """The least CPU time that the advised change saves, in percent."""
    saved_percent_most: float | None
    most_percent: float | None
    """The most that any setting could save, in percent of the CPU time."""
    visits_per_s: float | None
    """Visits to the zones a second."""
    why_unknown: str | None
    """Why the recording gives no answer."""
    error: str | None
    """Why the recording could not be read."""


@dataclass(frozen=True, repr=False)
class Fleet(Tabular):
    """Advice for many recordings, and how many recordings have each answer."""

    lines: tuple[FleetLine, ...]
    """A line for each recording, the worst first: Yes, unknown, No, and last the recordings that could not be
    read."""
    yes: tuple[str, ...]
    """The recordings that say Yes, the worst first."""
    no: int
    """How many recordings say No."""
    unknown: int
    """How many recordings do not say."""
    why_unknown: tuple[tuple[str, int], ...]
    """The reasons why recordings give no answer, and how many recordings have each reason, the most frequent
    first."""
    unread: int
    """How many recordings could not be read."""
    advised: tuple[tuple[str, int], ...]
    """The advised changes, and for how many recordings each change is advised, the most frequent first."""
    sentences: tuple[str, ...]
    """The summary in words."""
    table: _native.Table = field(compare=False)
    """The lines as a table."""

    def __len__(self) -> int:
        return len(self.lines)

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (
                line.recording,
                line.answer or "error",
                line.saved_percent_least,
                line.most_percent,
                line.visits_per_s,
                line.advised or line.why_unknown or line.error,
            )
            for line in self.lines
        ]

    def __repr__(self) -> str:
        return "\n".join([*self.sentences, "", text_table(_COLUMNS, self._rows())])

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.sentences)
        return f"<ul>{said}</ul>" + html_table(_COLUMNS, self._rows())


def fleet(*paths: str | os.PathLike[str], progress: Progress | None = None) -> Fleet:
    """Advises on many recordings, on all CPUs of this computer: files, and the ``.pgtrace`` files of folders.

    A recording that cannot be read has a line with its error, and the other recordings are still read. For
    more recordings than one computer can read, see :func:`advise_many`.
    """
    text, table = _native.fleet([os.fspath(path) for path in paths], progress=progress)
    return parse(Fleet, text, table=table)
