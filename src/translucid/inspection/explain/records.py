"""What a browser is given to show of an explanation, as plain values."""

from __future__ import annotations

from typing import Any

from translucid.inspection.explain.case import Case
from translucid.inspection.explain.explanation import explain
from translucid.inspection.explain.faithfulness import faithfulness


def why_record(case: Case, method: str) -> dict[str, Any]:
    """Return an explanation, and its test of faithfulness beside that of a random one."""
    why = explain(case, method, samples=200)
    return {
        "method": method,
        "source": why.source,
        "target": why.target,
        "importance": [[round(x, 4) for x in line] for line in why.importance.tolist()],
        "fit": [round(x, 3) for x in why.fit],
        "faithfulness": faithfulness(case, why)._asdict(),
        "random": faithfulness(case, explain(case, "random"))._asdict(),
    }
