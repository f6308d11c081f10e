"""The errors that a user sees: one line that names the thing and the way out, and an exit code."""


class ReplayError(Exception):
    """A failure that the user can act on; its text is one line. `exit_code` is what a command ends with."""

    exit_code = 2


class InputError(ReplayError):
    """What was handed over cannot be read or holds nothing that this tool knows."""


class UsageError(ReplayError):
    """The command was asked for something that does not exist."""


class CannotTell(ReplayError):
    """The question needs something that was not logged."""

    exit_code = 3
