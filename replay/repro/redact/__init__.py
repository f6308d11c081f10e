"""Logs that can be shown: names of hosts, people, files and functions are replaced, the diagnosis stays the same.

Everything is read twice: `collect` learns which names are private, `files` writes the logs anew with each of them
replaced by one that is as long and that the parsers take for the same kind of thing.
"""
