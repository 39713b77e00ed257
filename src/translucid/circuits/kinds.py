"""The record of features and circuits in the table of the core, `models/kinds.py`, and the files of their tabs.

Nothing here needs PyTorch.
"""

from pathlib import Path

from translucid.models.kinds import Extension, InspectorTabs, LessonFigures

FILE = "dictionary.safetensors"
"""The dictionary in the folder of a run."""
PAGE = Path(__file__).parent / "page"
"""The JavaScript modules and style sheets of the tabs *Features* and *Graph*, and of a part of *Heads*."""

_ROUTES, _FIELDS = "translucid.circuits.routes:CircuitRoutes", "translucid.circuits.fields"
CIRCUITS = Extension(
    routes={
        "POST /features": (f"{_ROUTES}.features", f"{_FIELDS}:FeaturesFields"),
        "POST /features/card": (f"{_ROUTES}.card", f"{_FIELDS}:CardFields"),
        "POST /features/steer": (f"{_ROUTES}.steer", f"{_FIELDS}:SteerFields"),
        "POST /graph": (f"{_ROUTES}.graph", f"{_FIELDS}:GraphFields"),
        "POST /graph/ablate": (f"{_ROUTES}.ablate", f"{_FIELDS}:AblateFields"),
        "POST /graph/score": (f"{_ROUTES}.score", f"{_FIELDS}:ScoreFields"),
    },
    tabs=InspectorTabs(
        tabs={"features": ("Features", "features_tab.js"), "graph": ("Graph", "graph_tab.js")},
        parts={"heads": "score_part.js"},
        files="translucid.circuits.kinds:tab_files",
        is_offered="translucid.circuits.kinds:has_dictionary",
    ),
    lessons=LessonFigures(
        records={
            "features": "translucid.circuits.lesson_records:features_record",
            "circuit": "translucid.circuits.lesson_records:circuit_record",
        },
        is_ready="translucid.circuits.lesson_records:is_ready",
        page="translucid.circuits.kinds:PAGE",
        styles=("features.css", "graph.css"),
    ),
    interventions={"feature": "translucid.circuits.steering:steering"},
    commands={
        "features": ("Inspect", "translucid.circuits.commands:features"),
        "graph": ("Inspect", "translucid.circuits.graph_command:graph"),
    },
)


def tab_files() -> dict[str, str]:
    """Return the texts of the tabs' files by their names."""
    return {file.name: file.read_text(encoding="utf-8") for file in PAGE.iterdir() if file.suffix in (".js", ".css")}


def has_dictionary(run: Path) -> bool:
    """Return whether a run folder has a dictionary of features."""
    from translucid.runs import run_folder

    return (run / run_folder.CIRCUITS / FILE).exists()
