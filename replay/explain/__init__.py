"""What one pasted line, code or number means: without a folder of logs, by the same grammars, tables and rules.

A pasted line goes the way of every line (sources, parse), into a database in memory; then each row that it made is read
by the knowledge tables, and the rules are asked which of them would read it. Nothing here knows a format.
"""

from replay.explain.explain import explain
from replay.explain.model import Explanation

__all__ = ["Explanation", "explain"]
