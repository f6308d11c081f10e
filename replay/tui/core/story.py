"""The findings as a tree that can be walked: finding, its chain, the lines that prove each step, and what it
explains.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from replay.report import build
from replay.report.model import Finding, Report
from replay.report.wording import certainty, lost, ranks_phrase, visible


@dataclass(frozen=True, slots=True)
class Ref:
    """The place of a line of evidence; `t` in s since 1970."""

    run_id: int
    file_id: int | None
    line_no: int | None
    rank: int | None
    t: float | None


@dataclass(frozen=True, slots=True)
class Node:
    """One row of the tree. `key` is its own, `parent` the row that it folds into; `ref` is where it leads."""

    key: str
    parent: str | None
    depth: int
    role: str
    """heading, root, finding, link, line, fact"""
    text: str
    who: str = ""
    note: str = ""
    ref: Ref | None = None
    finding: str | None = None
    has_children: bool = False


@dataclass(frozen=True, slots=True)
class Story:
    """All findings: the report they come from, and their rows."""

    report: Report
    nodes: tuple[Node, ...]
    refs: Mapping[str, tuple[Ref, ...]]
    """Finding -> places of its evidence."""

    def order(self) -> list[str]:
        """Return the findings in the order in which they are gone through: roots, then the others."""
        roots = [f.id for f in self.report.roots]
        return roots + [f.id for f in self.report.findings if f.id not in roots]

    def finding(self, finding_id: str) -> Finding | None:
        """Return a finding of the report."""
        return next((f for f in self.report.findings if f.id == finding_id), None)

    def visible(self, unfolded: frozenset[str]) -> list[Node]:
        """Return the rows to show: those whose parents are all unfolded."""
        shown: set[str] = set()
        rows = []
        for node in self.nodes:
            if node.parent is None or (node.parent in shown and node.parent in unfolded):
                shown.add(node.key)
                rows.append(node)
        return rows


def load(con: DuckDBPyConnection) -> Story:
    """Read the findings and how they hang together."""
    report = build.build(con)
    rows = con.execute("""
        SELECT e.finding_id, f.run_id, e.file_id, e.line_no, e.rank, e.t
        FROM evidence AS e JOIN findings AS f USING (finding_id) ORDER BY e.finding_id, e.nth
    """).fetchall()
    refs: dict[str, list[Ref]] = {}
    for finding_id, *place in rows:
        refs.setdefault(finding_id, []).append(Ref(*place))
    return Story(report, tuple(_nodes(report, refs)), {k: tuple(v) for k, v in refs.items()})


def _nodes(report: Report, refs: Mapping[str, list[Ref]]) -> list[Node]:
    nodes = [] if report.roots else [Node("verdict", None, 0, "heading", _verdict(report))]
    if not report.roots:
        nodes += [Node(f"out {text}", None, 1, "fact", f"ruled out: {visible(text)}") for text in report.ruled_out]
    told = [f.id for f in report.roots]
    several = len(report.runs) > 1
    for finding in report.roots:
        nodes += _finding(finding, refs, "root", several)
    others = [f for f in report.findings if f.id not in told]
    groups = {
        "explained": [f for f in others if f.explained_by],
        "hazards, have not failed": [f for f in others if not f.explained_by and f.kind == "hazard"],
        "not a cause": [f for f in others if not f.explained_by and f.kind == "note"],
        "also seen": [f for f in others if not f.explained_by and f.kind in {"cause", "symptom"}],
    }  # fmt: skip
    for name, members in groups.items():
        if members:
            nodes.append(Node(name, None, 0, "heading", name))
            for finding in members:
                nodes += _finding(finding, refs, "finding", several)
    silent = dict.fromkeys(f"{r.summary} ({r.cause}), but {r.why}" for r in report.rivals if r.finding is None)
    for title, lines in (
        ("considered, and not it", tuple(silent) if report.verdict != "healthy" else ()),
        ("collect before it is killed", report.collect_now),
        ("to know more next time", report.next_time),
    ):
        if lines:
            nodes.append(Node(title, None, 0, "heading", title))
            nodes += [Node(f"{title} {n}", None, 1, "fact", visible(line)) for n, line in enumerate(lines)]
    return nodes


def _verdict(report: Report) -> str:
    return {
        "healthy": "healthy: nothing found",
        "insufficient": "not known: these logs show no cause",
    }.get(report.verdict, "the cause is not known")


def _finding(finding: Finding, refs: Mapping[str, list[Ref]], role: str, several: bool) -> list[Node]:
    """The rows of a finding; where there are `several` runs, it says of which it is."""
    key = finding.id
    places = refs.get(key, [])
    run = f"run {finding.run}" if several else ""
    note = ", ".join(filter(None, (run, lost(finding.cost_s, finding.lost_s), certainty(finding.certainty))))
    nodes = [
        Node(
            key, None, 0 if role == "root" else 1, role, visible(finding.summary), ranks_phrase(finding.ranks),
            note, places[0] if places else None, key, bool(finding.chain),
        )
    ]  # fmt: skip
    depth = nodes[0].depth + 1
    for n, link in enumerate(finding.chain):
        name = f"{key}.{n}"
        found = [places[i] for i in link.evidence if i < len(places)]
        nodes.append(
            Node(name, key, depth, "link", visible(link.label), ranks_phrase(link.ranks), visible(link.text),
                 found[0] if found else None, key, bool(found))
        )  # fmt: skip
        for i in link.evidence:
            proof = finding.evidence[i]
            place = f"{proof.file}:{proof.line}" if proof.line is not None else f"{proof.file} {proof.at or ''}"
            nodes.append(
                Node(f"{name}.{i}", name, depth + 1, "line", visible(place), "", visible(proof.text),
                     places[i] if i < len(places) else None, key)
            )  # fmt: skip
    if finding.advice:
        nodes.append(
            Node(f"{key} try", key, depth, "fact", f"try: {visible(' '.join(finding.advice.split()))}", finding=key)
        )
    if finding.premises:
        nodes.append(Node(f"{key} on", key, depth, "fact", f"builds on {', '.join(finding.premises)}", finding=key))
    if finding.explains:
        nodes.append(
            Node(f"{key} explains", key, depth, "fact", f"explains {', '.join(finding.explains)}", finding=key)
        )
    if finding.explained_by:
        nodes.append(Node(f"{key} by", key, depth, "fact", f"by {', '.join(finding.explained_by)}", finding=key))
    return nodes
