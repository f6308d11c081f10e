"""Asks the database without making anybody wait: one thread, and of each kind of question only the newest is answered.

A person who holds a key down asks a hundred questions a second; what the screen wants is the answer to the last.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

Question = Callable[[DuckDBPyConnection], Any]
Answer = Callable[[Any], None]
Deliver = Callable[[Callable[[], None]], None]
"""Takes what hands an answer over, to call it in the thread of who asked."""


class Desk:
    """A thread that owns a cursor. `deliver` is called there with what hands an answer over."""

    def __init__(self, con: DuckDBPyConnection, deliver: Deliver) -> None:
        self._con, self._deliver = con, deliver
        self._open: OrderedDict[str, tuple[Question, Answer, Answer]] = OrderedDict()
        self._change = threading.Condition()
        self._working = 0
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="replay-desk", daemon=True)
        self._thread.start()

    def ask(self, kind: str, question: Question, answer: Answer, failed: Answer = lambda error: None) -> None:
        """Put a question; an open one of the same kind is forgotten. `failed` gets the exception where it fails."""
        with self._change:
            self._open.pop(kind, None)
            self._open[kind] = (question, answer, failed)
            self._change.notify_all()

    def forget(self, kind: str) -> None:
        """Drop an open question."""
        with self._change:
            self._open.pop(kind, None)

    @property
    def is_busy(self) -> bool:
        """True while a question is open or being answered."""
        with self._change:
            return bool(self._open or self._working)

    def wait(self) -> None:
        """Wait until no question is open (for tests and measurements)."""
        with self._change:
            self._change.wait_for(lambda: not self._open and not self._working)

    def interrupt(self) -> None:
        """Stop the question that is being answered; it fails."""
        with suppress(duckdb.ConnectionException):  # the thread has just ended
            self._con.interrupt()

    def close(self) -> None:
        """Answer nothing more, and end the thread."""
        with self._change:
            self._closed = True
            self._open.clear()
            self._change.notify_all()
        if self._thread.is_alive():
            self.interrupt()
        self._thread.join(timeout=2)

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._open or self._closed)
                if self._closed:
                    break
                _, (question, answer, failed) = self._open.popitem(last=False)
                self._working += 1
            try:
                self._settle(question, answer, failed)
            finally:
                with self._change:
                    self._working -= 1
                    self._change.notify_all()
        self._con.close()

    def _settle(self, question: Question, answer: Answer, failed: Answer) -> None:
        try:
            found = question(self._con)
        except Exception as error:  # whatever it is, it belongs to who asked, not to this thread
            self._hand(failed, error)
            return
        self._hand(answer, found)

    def _hand(self, take: Answer, what: Any) -> None:
        if not self._closed:
            self._deliver(lambda: take(what))
