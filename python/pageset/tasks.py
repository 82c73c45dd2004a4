"""The tasks of a dataset that are not done yet, given to an executor and stored as they come back."""

import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future
from typing import Any, NamedTuple

from . import _native
from .document import Progress
from .errors import Error

WAITING = 1000
"""Tasks that an executor has at once: enough for every worker, and few enough for a scheduler's memory."""
ATTEMPTS = 3
"""How often a task is given out whose worker is lost."""
LOOK_S = 1.0
"""How often the executor is looked at while nothing comes back, in seconds."""


class Task(NamedTuple):
    """One piece of work, which any process can do that has this package."""

    key: str
    """Of all that decides the result."""
    function: Callable[..., bytes]
    """Makes the bytes of the result's file."""
    arguments: tuple[Any, ...]

    def run(self) -> bytes:
        return self.function(*self.arguments)


def finish(
    tasks: Sequence[Task], dataset: _native.Dataset, executor: Executor | None, progress: Progress | None
) -> None:
    """Does what the dataset does not have."""
    present = dataset.keys()
    todo = [task for task in tasks if task.key not in present]
    tell = progress or (lambda *_: None)
    tell("working", 0, len(todo))
    results = ((task, task.run()) for task in todo) if executor is None else _given_out(todo, executor)
    for done, (task, result) in enumerate(results, start=1):
        dataset.store(task.key, result)
        tell("working", done, len(todo))


def _given_out(todo: Sequence[Task], executor: Executor) -> Iterator[tuple[Task, bytes]]:
    """Results in the order in which they come back. What was given out is taken back if this ends early."""
    back: queue.SimpleQueue[Future[bytes]] = queue.SimpleQueue()
    out: dict[Future[bytes], tuple[Task, int]] = {}

    def give(task: Task, attempt: int) -> None:
        future = executor.submit(_run, task.function, task.arguments)
        out[future] = (task, attempt)
        future.add_done_callback(back.put)

    def keep_busy(waiting: Iterable[Task]) -> None:
        for task in waiting:
            give(task, 1)
            if len(out) >= WAITING:
                return

    waiting = iter(todo)
    try:
        keep_busy(waiting)
        while out:
            future = _next(back, executor)
            task, attempt = out.pop(future)
            try:
                result = future.result()
            except Error:
                # The work itself cannot be done: another worker would say the same.
                raise
            except (Exception, CancelledError):
                if attempt == ATTEMPTS:
                    raise
                give(task, attempt + 1)
                continue
            yield task, result
            keep_busy(waiting)
    except Error:
        raise
    except (Exception, CancelledError) as lost:
        raise Error(
            f"the executor has failed ({type(lost).__name__}: {lost}); what is finished is stored, and the same call goes on"
        ) from lost
    finally:
        for future in out:
            future.cancel()


def _run(function: Callable[..., bytes], arguments: tuple[Any, ...]) -> bytes:
    return function(*arguments)


def _next(back: "queue.SimpleQueue[Future[bytes]]", executor: Executor) -> "Future[bytes]":
    while True:
        try:
            return back.get(timeout=LOOK_S)
        except queue.Empty:
            # Dask's futures wait for ever for a scheduler that is gone.
            client = getattr(executor, "_client", None)
            if getattr(client, "status", "running") not in ("running", "connecting"):
                raise Error("the cluster is gone; what is finished is stored, and the same call goes on") from None
