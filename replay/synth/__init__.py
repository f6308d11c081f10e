"""Logs of runs that never ran: a small simulation of ranks and operations, and writers in the real formats.

The boundary exists so that what the parser reads and what the rules conclude can be tested on runs whose truth is
known, of any size and with any fault. Lines are written by the inverse of the grammars (`inverse`), what happens by a
discrete simulation (`engine`, `program`, `aftermath`), and where it ends up by the launcher (`launchers`).
"""

from replay.synth.produce import write
from replay.synth.scenario import Scenario, find_scenario, read_scenario

__all__ = ["Scenario", "find_scenario", "read_scenario", "write"]
