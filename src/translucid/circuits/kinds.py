"""The record of features and circuits in the table of the core, `models/kinds.py`."""

from translucid.models.kinds import Extension, InspectorTabs

_ROUTES, _FIELDS = "translucid.circuits.routes:CircuitRoutes", "translucid.circuits.fields"
CIRCUITS = Extension(
    routes={
        "POST /features": (f"{_ROUTES}.features", f"{_FIELDS}:FeaturesFields"),
        "POST /features/card": (f"{_ROUTES}.card", f"{_FIELDS}:CardFields"),
        "POST /features/steer": (f"{_ROUTES}.steer", f"{_FIELDS}:SteerFields"),
        "POST /graph": (f"{_ROUTES}.graph", f"{_FIELDS}:GraphFields"),
        "POST /graph/ablate": (f"{_ROUTES}.ablate", f"{_FIELDS}:AblateFields"),
    },
    tabs=InspectorTabs(
        tabs={"features": ("Features", "features_tab.js"), "graph": ("Graph", "graph_tab.js")},
        files="translucid.circuits.page_files:tab_files",
        is_offered="translucid.circuits.page_files:has_dictionary",
    ),
    interventions={"feature": "translucid.circuits.steering:steering"},
    commands={
        "features": ("Inspect", "translucid.circuits.commands:features"),
        "graph": ("Inspect", "translucid.circuits.graph_command:graph"),
    },
)
