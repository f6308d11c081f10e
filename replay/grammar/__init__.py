"""Formats as data: loads `grammars/*.lark` and runs their line productions.

The boundary exists so that the executor can be exchanged (compiled patterns here, Lark itself in tests, something
vectorised later) without touching a grammar.
"""
