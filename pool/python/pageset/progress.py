"""Shows the progress of long work by a bar of tqdm."""

from types import TracebackType
from typing import Any


class Bar:
    """A progress bar of tqdm. Pass the bar as ``progress``: ``with pageset.Bar() as bar: pageset.replay(...,
    progress=bar)``.

    tqdm chooses between a bar for a terminal and a bar for a notebook. The package tqdm must be installed.
    """

    def __init__(self, **options: Any) -> None:
        from tqdm.auto import tqdm

        self._bar = tqdm(**options)
        self._what: str | None = None

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if what != self._what:
            self._what = what
            self._bar.set_description(what, refresh=False)
            self._bar.reset(total)
        self._bar.total = total
        self._bar.n = done
        self._bar.refresh()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._bar.close()
