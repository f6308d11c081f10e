"""Names of signals: launchers write numbers, words, or Python's spelling of them."""

_NUMBERS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    15: "SIGTERM",
}
_WORDS = {
    "killed": "SIGKILL",
    "out of memory": "SIGKILL",
    "terminated": "SIGTERM",
    "segmentation fault": "SIGSEGV",
    "bus error": "SIGBUS",
    "aborted": "SIGABRT",
    "illegal instruction": "SIGILL",
    "floating point exception": "SIGFPE",
    "floating-point exception": "SIGFPE",
    "hangup": "SIGHUP",
    "interrupt": "SIGINT",
    "user defined signal 1": "SIGUSR1",
    "user defined signal 2": "SIGUSR2",
}
_BY_NAME = {name: number for number, name in _NUMBERS.items()}


def signal_name(text: str | None) -> str | None:
    """Return SIGKILL for "9", "-9", "Signals.SIGKILL", "SIGKILL" and "Killed"; None for what is no signal."""
    if text is None:
        return None
    text = text.strip().removeprefix("Signals.")
    if text.startswith("SIG"):
        return text
    if text.lstrip("-").isdigit() and len(text) < 5:
        return _NUMBERS.get(abs(int(text)))
    return _WORDS.get(text.lower())


def exit_code(signal: str | None) -> int | None:
    """Return what Python calls the exit code of a process that a signal ended: -9 for SIGKILL."""
    number = _BY_NAME.get(signal or "")
    return None if number is None else -number


def of_code(code: int | None) -> str | None:
    """Return the signal that an exit code stands for: -9 and, by the shell's custom, 137 are SIGKILL."""
    if code is None:
        return None
    if code < 0:
        return _NUMBERS.get(-code)
    return _NUMBERS.get(code - 128) if 128 < code < 160 else None
