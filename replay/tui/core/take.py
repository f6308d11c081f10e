"""What can be taken along: a finding, or the place where one stands, as Markdown for an issue."""

from replay.report.markdown import render_finding
from replay.report.wording import ranks_phrase, visible
from replay.tui.core.session import Session
from replay.tui.core.window import since


def markdown(session: Session) -> str:
    """Return the finding that was gone to last; else the event, with its raw lines and what the ranks were doing."""
    told = session.story.finding(session.tour.finding) if session.story and session.tour.finding else None
    if told is not None:
        return render_finding(told)
    place, book, view = session.walk.place, session.book, session.focus.source
    step = book.step_at(place.t)
    parts = [
        f"**{ranks_phrase([place.rank]) if place.rank is not None else 'no rank'}** at {since(place.t - book.first)}"
        + (f", step {step}" if step is not None else "")
    ]
    doing = [
        f"- {ranks_phrase(group.ranks)}: {group.state}" + (f" for {ranks_phrase(group.late)}" if group.late else "")
        for group in book.spans.groups_at(place.t)
    ]
    parts += ["\n".join(doing)] if doing else []
    if view is not None and view.lines:
        near = [line for line in view.lines if view.focus is None or abs(line.number - view.focus) <= 2]
        body = [f"{line.number:>6} {''.join(piece.text for piece in line.pieces)}" for line in near]
        fence = "```"
        while any(fence in line for line in body):
            fence += "`"
        parts.append(f"`{visible(view.path).replace('`', chr(39))}:{view.focus}`")
        parts.append("\n".join([f"{fence}text", *body, fence]))
    return "\n\n".join(parts) + "\n"
