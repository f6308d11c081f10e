"""The figures as a page: docs/accuracy.md is what `replay corpus score --format markdown` prints."""

from collections.abc import Sequence

from replay import resources
from replay.corpus.score import Figures, Score, figures
from replay.corpus.tally import tally, uncovered
from replay.expert.taxonomy import load_taxonomy

HEAD = ["cause", "runs", "top 1", "precision", "recall"]

_PAGE = """\
# Accuracy

What `replay corpus score` says of the labelled runs in `corpora/`: {recorded} recorded on torch (CPU, gloo), {written}
written from scenarios; {healthy} of them are healthy. `replay corpus score --format markdown > docs/accuracy.md` writes
this page anew.

These runs came with the tool, and its rules were written with some of them in sight: the figures show that what is
known is recognised, that its healthy twin is not, and that a change has broken nothing. They do not say how the tool
fares on logs that it has never met; for that, score a folder of your own: `replay corpus score DIR`.

    {line}

- **top 1**: the first finding is the cause, on the right ranks; of a healthy run: there is no root.
- **clean**: no other cause stands as a root beside it. **proof**: each line that proves it stands at its file and line.
- **precision**: share of the roots that are right. **recall**: share of the faults that a root names.

{table}

## Not covered
No run here shows these causes; their rules have only the tables beside them (`replay rules test`). Most need what a
CPU has not: a GPU (CUDA graphs, kernels, Xid, throttling, P2P), NCCL with its network, a driver, a scheduler;
`corpora/gpu/record.py` records what one machine with a GPU can show. The others (damaged and shared compile caches, a
compile that hangs, what FSDP and DTensor do under compile, settings of two runs) have no script of ours yet.

{missing}
"""


def rows(scores: Sequence[Score]) -> list[list[str]]:
    """Return the table's rows, without its head."""
    return [
        [one.cause, str(one.runs), str(one.top1), _share(one.precision), _share(one.recall)] for one in tally(scores)
    ]


def line(total: Figures) -> str:
    """Return all figures in one line."""
    return (
        f"cases {total.cases}  top1 {total.top1}  top3 {total.top3}  clean {total.clean}  proof {total.proof}  "
        f"unknown {total.unknown}  precision {_share(total.precision)}  recall {_share(total.recall)}"
    )


def page(scores: Sequence[Score]) -> str:
    """Return the page in Markdown."""
    table = [HEAD, ["---"] * len(HEAD), *rows(scores)]
    missing = uncovered(scores, load_taxonomy([resources.folder("rules")]))
    layers = dict.fromkeys(cause.layer for cause in missing)
    written = sum(s.case.startswith("scenarios/") for s in scores)
    return _PAGE.format(
        recorded=len(scores) - written,
        written=written,
        healthy=sum(not s.faults for s in scores),
        line=line(figures(scores)),
        table="\n".join(f"| {' | '.join(cells)} |" for cells in table),
        missing="\n".join(
            f"- {layer}: {', '.join(f'`{cause.id}`' for cause in missing if cause.layer == layer)}" for layer in layers
        ),
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
