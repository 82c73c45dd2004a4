"""Does many simulations, or evaluates many recordings, on this computer or on an executor's computers."""

import hashlib
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from . import _native, tasks
from .document import Progress, html_table, listed, settings_list, text_table

Path = str | os.PathLike[str]


@dataclass(frozen=True, repr=False)
class Results:
    """Finished work: a directory with a Parquet file for each task. Any table engine can read these files."""

    directory: pathlib.Path
    """The directory. ``f"{directory}/*/*.parquet"`` names all files that any work has stored there."""
    keys: tuple[str, ...]
    """The keys of this work's tasks, in order."""

    def paths(self) -> Iterator[pathlib.Path]:
        """The files of this work, in order."""
        dataset = _native.Dataset(self.directory)
        return map(dataset.path, self.keys)

    def digest(self) -> str:
        """Computes a hash of all results, in order. Two computers with the same results get the same hash."""
        digest = hashlib.sha256()
        for path in self.paths():
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self.keys)

    def _rows(self) -> list[tuple[str, object]]:
        return [("results", len(self)), ("directory", self.directory)]

    def __repr__(self) -> str:
        return text_table(["", ""], self._rows()).lstrip()

    def _repr_html_(self) -> str:
        return html_table(["", ""], self._rows())


def sweep(
    plan: Path,
    executor: Executor | None = None,
    *,
    into: Path | None = None,
    progress: Progress | None = None,
) -> Results:
    """Simulates all unfinished runs of a plan, each as a task.

    ``executor`` is any executor with the interface of ``concurrent.futures``: processes of this computer,
    Dask's ``Client.get_executor()``, or an executor of ``mpi4py.futures``, Parsl or executorlib. Without an
    executor, this process does the work. The function stores each result as a Parquet file in the directory
    ``into``. The default of ``into`` is the plan's name with ``.results``. A file's key is a hash of all
    inputs that decide the result. So a new call continues an interrupted sweep, and several sweeps may use a
    directory at the same time.
    """
    plan = pathlib.Path(plan)
    return _finish(tasks.of_plan(plan), into or plan.with_suffix(".results"), executor, progress)


def replay_many(
    recordings: Sequence[Path],
    policies: Sequence[str] = (),
    executor: Executor | None = None,
    *,
    settings: Mapping[str, int | Sequence[int]] | None = None,
    into: Path,
    progress: Progress | None = None,
) -> Results:
    """Replays each recording under all ``policies``, each recording as a task. The other arguments are those
    of :func:`sweep`.

    Each worker must find the recordings under the same names.
    """
    names = [os.fspath(path) for path in listed("recordings", recordings)]
    chosen, given = listed("policies", policies), settings_list(settings)
    keys = _native.replay_tasks(names, chosen, given)
    todo = {
        key: tasks.Task(key, _native.replay_task, (key, name, chosen, given))
        for key, name in zip(keys, names, strict=True)
    }
    return _finish(list(todo.values()), into, executor, progress)


def recordings(*paths: Path) -> list[pathlib.Path]:
    """Returns the named files, and of each named folder the files whose names end in ``.pgtrace``, sorted by
    name."""
    return [pathlib.Path(path) for path in _native.recordings([os.fspath(path) for path in paths])]


def advise_many(
    recordings: Sequence[Path],
    executor: Executor | None = None,
    *,
    into: Path,
    progress: Progress | None = None,
) -> Results:
    """Advises what to do about each recorded machine, each recording as a task. The other arguments are those
    of :func:`sweep`.

    Each recording gets one row: ``answer`` (Yes, No or unknown), the ``advised`` change, and the CPU time
    that the change saves. If the function cannot read the recording, the row has the ``error``. Each worker
    must find the recordings under the same names.
    """
    names = [os.fspath(path) for path in listed("recordings", recordings)]
    keys = _native.advise_tasks(names)
    todo = {key: tasks.Task(key, _native.advise_task, (key, name)) for key, name in zip(keys, names, strict=True)}
    return _finish(list(todo.values()), into, executor, progress)


def _finish(
    todo: Sequence[tasks.Task], into: Path, executor: Executor | None, progress: Progress | None
) -> Results:
    directory = pathlib.Path(into)
    tasks.finish(todo, _native.Dataset(directory), executor, progress)
    return Results(directory, tuple(task.key for task in todo))
