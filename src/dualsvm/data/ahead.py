"""Reading ahead: a thread reads and decodes what comes next while the caller works on what came before."""

from __future__ import annotations

import atexit
from collections.abc import Generator
from queue import Empty, Queue
from threading import Event, Thread, current_thread
from typing import Any, TypeVar

Item = TypeVar("Item")

_END = object()


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def read_ahead(items: Generator[Item, None, None], depth: int) -> Generator[Item, None, None]:
    """Yield the items, of which up to `depth` wait, read by a thread; with a depth of 0 there is no thread.

    An error of the thread is raised here, in its place among the items. Closing ends the thread.
    """
    if depth == 0:
        yield from items
        return
    waiting: Queue[Any] = Queue(depth)
    stop = Event()
    thread = Thread(target=_work, args=(items, waiting, stop), name="dualsvm reader", daemon=True)

    def end() -> None:
        stop.set()
        while thread.is_alive() and thread is not current_thread():  # it may collect the garbage that this has become
            _empty(waiting)  # lets go a thread that waits for room; then it sees that it must stop
            thread.join(0.05)

    atexit.register(end)  # for whoever leaves Python in the middle of a pass
    try:
        thread.start()
        while (item := waiting.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item
            del item  # or it would be kept while the next one is waited for
    finally:
        end()
        atexit.unregister(end)  # not before: Ctrl-C may come while the thread is waited for


def _work(items: Generator[Any, None, None], waiting: Queue[Any], stop: Event) -> None:
    try:
        for item in items:
            waiting.put(item)
            del item
            if stop.is_set():
                return
        waiting.put(_END)
    except BaseException as error:  # whatever it is, it belongs to the caller
        waiting.put(_Failure(error))
    finally:
        items.close()


def _empty(waiting: Queue[Any]) -> None:
    try:
        while True:
            waiting.get_nowait()
    except Empty:
        pass
