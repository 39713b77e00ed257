"""The bounds on a student that a user sets: `--latency 5ms` and `--size 10MB`."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from translucid.distillation.measuring import MEGABYTE, Measured, Measurements
from translucid.engines import ALLOWED
from translucid.ground.errors import UserError

_TIMES = {"": 1.0, "ms": 1.0, "s": 1000.0}
"""Units of time in milliseconds."""
_SIZES = {"": 1.0, "mb": 1.0, "kb": 1e-3, "gb": 1e3, "mib": (1 << 20) / MEGABYTE, "kib": (1 << 10) / MEGABYTE}
"""Units of size in megabytes."""


class Bounds(NamedTuple):
    """Bounds on the time for one sentence and on the size on disk."""

    milliseconds: float | None = None
    megabytes: float | None = None

    @classmethod
    def of(cls, latency: str | None = None, size: str | None = None) -> Self:
        """Read the bounds of the command line, such as `5ms` and `10MB`; a lone number has these units.

        Raises:
            UserError: a bound is not a positive number with a unit of time or size.
        """
        milliseconds = _read(latency, _TIMES, "--latency", "5ms") if latency else None
        megabytes = _read(size, _SIZES, "--size", "10MB") if size else None
        return cls(milliseconds, megabytes)

    def __str__(self) -> str:
        """Name the bounds."""
        parts = []
        if self.milliseconds is not None:
            parts.append(f"{self.milliseconds:g} ms per sentence")
        if self.megabytes is not None:
            parts.append(f"{self.megabytes:g} MB")
        return " and ".join(parts)

    def met_by(self, system: Measured) -> bool:
        """Return whether a system is within the bounds."""
        fast = self.milliseconds is None or system.milliseconds <= self.milliseconds
        small = self.megabytes is None or system.megabytes <= self.megabytes
        return fast and small

    def best(self, measurements: Measurements, allowed: float = ALLOWED) -> Measured | None:
        """Return the best student within the bounds; None if there is none.

        Of those whose score is at most `allowed` below that of the best, it is the one with the shortest time for a
        sentence.
        """
        candidates = [system for system in measurements.systems if system.role == "student" and self.met_by(system)]
        if not candidates:
            return None
        threshold = max(map(measurements.score, candidates)) - allowed
        acceptable = [system for system in candidates if measurements.score(system) >= threshold]
        return min(acceptable, key=lambda system: system.milliseconds)


def _read(text: str, units: dict[str, float], option: str, example: str) -> float:
    """Return a bound in the first of the units."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if not match or match[2] not in units or not float(match[1]):
        unit_names = ", ".join(filter(None, units))
        raise UserError(
            f"{option} {text!r} is not a positive number with a unit ({unit_names})", fix=f"Example: {example}."
        )
    return float(match[1]) * units[match[2]]
