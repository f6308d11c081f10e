"""Numbers out of untrusted text: what is none, or is too long to be one, is None."""

_DIGITS = 20


def integer(text: str | None, base: int = 10) -> int | None:
    """The integer that the text says, None where there is none or it is longer than 64 bits can be."""
    if text is None or len(text) > _DIGITS:
        return None
    try:
        return int(text, base)
    except ValueError:
        return None


def real(text: str | None) -> float | None:
    """The number that the text says, None where there is none."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
