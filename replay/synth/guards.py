"""Why a frame is compiled again: the words of one version of torch for each kind of guard.

`strip` in the texts: from 2.7 on a reason names `x`, before that `L['x']`.
"""

_CAUSES = {
    "size": ("recompile-dynamic-shape",),
    "dtype": ("recompile-dtype",),
    "stride": ("recompile-stride",),
    "requires-grad": ("recompile-requires-grad",),
    # up to 2.5 the reason does not say which state changed
    "global-state": ("recompile-grad-mode", "recompile-global-state"),
    "python-value": ("recompile-python-value",),
    "training": ("recompile-training-mode",),
    "length": ("recompile-container",),
}


def guard_causes(guard: str) -> tuple[str, ...]:
    """Return the causes that a guard's failure may be called, by the taxonomy."""
    return _CAUSES[guard]


def guard_reasons(guard: str, version: tuple[int, ...], nth: int) -> list[str]:
    """Return the reasons of the `nth` recompile of a frame (from 1), the oldest entry's first."""

    def name(text: str) -> str:
        return text if version >= (2, 7) else f"L['{text}']"

    def attribute(text: str) -> str:
        return f"self.{text}" if version >= (2, 7) else f"L['self'].{text}"

    sizes = [32, 31, 27, 23, 19, 17, 13, 11, 7]
    values = list(range(20, 30))
    match guard:
        case "size":
            return [
                f"tensor '{name('x')}' size mismatch at index 0. expected {sizes[n]}, actual {sizes[nth]}"
                for n in range(nth)
            ]
        case "dtype":
            kinds = ["Float", "BFloat16", "Half", "Double"]
            return [
                f"tensor '{name('x')}' dtype mismatch. expected {kinds[n % 4]}, actual {kinds[nth % 4]}"
                for n in range(nth)
            ]
        case "stride":
            return [
                f"tensor '{name('x')}' stride mismatch at index {n}. expected {64 * (n + 1)}, actual {32 * (nth + 1)}"
                for n in range(nth)
            ]
        case "requires-grad":
            return [f"tensor '{name('x')}' requires_grad mismatch. expected requires_grad={n % 2}" for n in range(nth)]
        case "global-state":
            return [
                "GLOBAL_STATE changed: grad_mode " if version >= (2, 6) else "___check_global_state()"
                for _ in range(nth)
            ]
        case "python-value":
            return [f"{attribute('scale')} == {values[n]}" for n in range(nth)]
        case "training":
            return [f"{attribute('training')} == {n % 2 == 0}" for n in range(nth)]
    return [f"len({name('features')}) == {n + 3}" for n in range(nth)]
