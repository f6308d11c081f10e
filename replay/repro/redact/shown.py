"""Texts of one report with their private names replaced; what is private is learned from the run that it is about.

Unlike logs that are written anew, a report is short and read by people: replacements are short words with a letter, and
only the lines that can teach a name are looked at, not all of them.
"""

from collections.abc import Iterable

from replay.report.model import Evidence
from replay.repro.redact.collect import collect
from replay.repro.redact.names import Names
from replay.repro.redact.places import Places
from replay.repro.redact.rewrite import Rewriter
from replay.repro.redact.vocabulary import is_public_part
from replay.run import Run
from replay.sources.layout import folder_name
from replay.store.columns import TEXT_CUT

_LINES_BEFORE = 60
"""A printed tensor, or a frame and its line of code, begin at most so many lines before a line that shows them."""
_KEPT = frozenset({"attempt", "debug", "rank", "local_rank", "group_rank", "index", "stream"})
"""Names of folders that launchers and torch give."""
_MOST_TEACHING = 20_000
_TEACHING = """
    SELECT text FROM lines
    WHERE contains(text, '/home/') OR contains(text, '/homes/') OR contains(text, '/Users/') OR contains(text, '@')
        OR contains(text, 'torchinductor_') OR contains(text, '://') OR contains(text, 'File "')
        OR contains(text, 'L[''') OR contains(text, '<locals>')
    GROUP BY text ORDER BY min(file_id), min(line_no) LIMIT $most
"""
"""Lines that tell people, hosts, folders and functions; equal ones once."""
_BEFORE = """
    SELECT l.writer_id, l.text FROM lines AS l JOIN files AS f USING (file_id)
    WHERE f.path = $path AND l.line_no BETWEEN $line - $before AND $line ORDER BY l.line_no
"""


class Shown:
    """Replaces what is private in the texts of a report; equal names always by the same word."""

    def __init__(self, run: Run, texts: Iterable[str], evidence: Iterable[Evidence]) -> None:
        self._run = run
        self._names = Names(keeps_length=False)
        self._places = Places(self._names)
        collect(run, self._names, self._places)
        learner = Rewriter(self._names, self._places, learns=True)
        for (text,) in run.con.execute(_TEACHING, {"most": _MOST_TEACHING}).fetchall():
            learner.line(text, object())
        for text in texts:
            learner.line(text, object())
        for one in evidence:
            self._through(learner, one)
        self._places = self._places.again()
        self._files: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Return a text with what is private replaced."""
        return "\n".join(self._rewriter().line(_whole(line), None) for line in text.split("\n"))

    def file(self, path: str) -> str:
        """Return the path of a log; the names by which launchers tell ranks and attempts stay."""
        if path not in self._files:
            *folders, last = path.split("/")
            shown = [*(self._component(f, False) for f in folders), self._component(last, True)]
            self._files[path] = "/".join(shown)
        return self._files[path]

    def evidence(self, one: Evidence) -> str:
        """Return the text of a line that proves something; what came before it says whether it is code or a tensor."""
        return self._through(self._rewriter(), one)

    def replaced(self, report: str) -> list[tuple[str, str, str]]:
        """Return kind, name and replacement of what was replaced in a report."""
        return [
            (kind.split()[0], text, new)
            for kind, text, new in self._names.all()
            if new in report and (kind, new) not in {("folder", text), ("file", text)}
        ]

    def _rewriter(self) -> Rewriter:
        return Rewriter(self._names, self._places)

    def _through(self, rewriter: Rewriter, one: Evidence) -> str:
        if one.line is None:
            return rewriter.line(_whole(one.text), None)
        asked = {"path": one.file, "line": one.line, "before": _LINES_BEFORE}
        shown = None
        for writer, text in self._run.con.execute(_BEFORE, asked).fetchall():
            shown = rewriter.line(_whole(text), writer)
        return rewriter.line(_whole(one.text), None) if shown is None else shown

    def _component(self, text: str, is_file: bool) -> str:
        known = self._names.anywhere.get(text)
        if known is not None:
            return known
        shown = self._names.chunk(text)
        words = shown.replace("-", "_").replace(".", "_").split("_")
        if folder_name(text.partition(".")[0]).record in _KEPT or all(map(is_public_part, words)):
            return shown
        return self._names.component(shown, is_file)


def _whole(text: str) -> str:
    """A line without the word that the store cut in two: half of a key is not known for one."""
    if len(text) < TEXT_CUT:
        return text
    return text[: max(text.rfind(" "), 0)] + " ..."
