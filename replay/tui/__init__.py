"""The screens of `replay tui`: one cursor, a moment in the run, and every panel shows the run at that moment.

`core` holds what the screens show and knows nothing of terminals: it is tested without one, and a notebook could use
it.
Everything beside it draws with Textual and holds no logic.
"""
