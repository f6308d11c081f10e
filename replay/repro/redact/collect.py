"""Which names of a run are private: what its tables say of hosts, people, files and functions."""

import re
from collections.abc import Iterator

from replay.parse.places import is_installed
from replay.repro.redact.names import Names
from replay.repro.redact.places import Places
from replay.repro.redact.vocabulary import is_public
from replay.run import Run

_HOSTS = """
    SELECT DISTINCT name FROM (
        SELECT host AS name FROM writers UNION ALL SELECT host FROM ranks UNION ALL SELECT of_host FROM exits
        UNION ALL SELECT of_host FROM signals UNION ALL SELECT host FROM files
        UNION ALL SELECT value FROM env WHERE upper(name) IN
            ('HOSTNAME', 'MASTER_ADDR', 'SLURMD_NODENAME', 'SLURM_LAUNCH_NODE_IPADDR', 'HOST', 'NODE_NAME')
    ) WHERE name IS NOT NULL AND name <> '' ORDER BY name
"""
_LABELS = "SELECT DISTINCT unnest(string_split(label, '/')) AS name FROM writers WHERE label IS NOT NULL ORDER BY name"
_USERS = "SELECT DISTINCT value FROM env WHERE upper(name) IN ('USER', 'LOGNAME', 'USERNAME') ORDER BY value"
_FUNCTIONS = """
    SELECT DISTINCT fn, file FROM (
        SELECT fn, fn_file AS file FROM compiles UNION ALL SELECT fn, fn_file FROM guard_failures
        UNION ALL SELECT fn, fn_file FROM recompile_limits UNION ALL SELECT user_fn, user_file FROM graph_breaks
        UNION ALL SELECT user_fn, user_file FROM exceptions
    ) WHERE fn IS NOT NULL ORDER BY fn, file
"""
_FILES = """
    SELECT DISTINCT file FROM (
        SELECT fn_file AS file FROM compiles UNION ALL SELECT user_file FROM compiles
        UNION ALL SELECT user_file FROM guard_failures UNION ALL SELECT user_file FROM graph_breaks
        UNION ALL SELECT user_file FROM exceptions UNION ALL SELECT user_file FROM crashes
    ) WHERE file IS NOT NULL ORDER BY file
"""
_EXCEPTIONS = """
    SELECT DISTINCT type FROM exceptions
    WHERE user_file IS NOT NULL AND (last_file = user_file OR qualified LIKE '\\_\\_main\\_\\_.%' ESCAPE '\\')
    ORDER BY type
"""
_SOURCES = """
    SELECT DISTINCT source FROM guard_failures WHERE source IS NOT NULL
    UNION SELECT DISTINCT name FROM parameters WHERE name IS NOT NULL
    UNION SELECT DISTINCT unnest(string_split(names, ';')) FROM ddp_buckets WHERE names IS NOT NULL ORDER BY 1
"""
_KEYS = "SELECT DISTINCT name FROM metrics UNION SELECT DISTINCT name FROM env WHERE origin = 'app' ORDER BY name"
_LONGEST = 64
_ACTOR = re.compile(r"([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)(?:_[A-Z]+[0-9]+)*(?![A-Za-z0-9_.-])")
"""What Ray and vLLM call a writer: an actor's class, and its place in a group (`EngineCore_DP0`). Hosts and pods are
written in small letters."""


def _column(run: Run, query: str) -> Iterator[str]:
    for (value,) in run.sql(query).rows:
        if isinstance(value, str) and value:
            yield value


def collect(run: Run, names: Names, places: Places) -> None:
    """Learn the private names that the tables hold. Keys of figures come first: they stay."""
    for key in _column(run, _KEYS):
        for word in key.split("."):
            names.keep(word)
    for host in (*_column(run, _HOSTS), *_column(run, _LABELS)):
        if actor := _ACTOR.match(host):
            _identifiers(names, actor[1])
        elif len(host) <= _LONGEST and not _is_address(host):
            names.host(host)
    for user in _column(run, _USERS):
        names.user(user)
    for file in _column(run, _FILES):
        places.learn(file)
    for fn, file in run.sql(_FUNCTIONS).rows:
        if file is None or not is_installed(file):
            _identifiers(names, fn)
    for kind in _column(run, _EXCEPTIONS):
        _identifiers(names, kind)
    for source in _column(run, _SOURCES):
        _identifiers(names, source)


def _identifiers(names: Names, text: str) -> None:
    word = ""
    for c in text + " ":
        if c.isalnum() or c == "_":
            word += c
            continue
        if word and not word[0].isdigit() and not is_public(word) and len(word) <= _LONGEST:
            names.identifier(word)
        word = ""


def _is_address(text: str) -> bool:
    return ":" in text or (text.count(".") == 3 and text.replace(".", "").isdigit())
