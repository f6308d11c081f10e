"""What the run would have been: the logged run as a recurrence over ranks and operations, replayed, changed, replayed.

from replay import simulate
outcome = simulate.run(connection, simulate.Change(without=(simulate.Without("recompiles", (3,)),)))
print(outcome.saved_s, outcome.replay_error)
"""

from replay.simulate.model import Cause, Change, Limit, Outcome, RankOutcome, Without
from replay.simulate.phases import Phases
from replay.simulate.whatif import WhatIf, run

__all__ = ["Cause", "Change", "Limit", "Outcome", "Phases", "RankOutcome", "WhatIf", "Without", "run"]
