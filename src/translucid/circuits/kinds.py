"""The record of features and circuits in the table of the core, `models/kinds.py`."""

from translucid.models.kinds import Extension

CIRCUITS = Extension(
    interventions={"feature": "translucid.circuits.steering:steering"},
    commands={
        "features": ("Inspect", "translucid.circuits.commands:features"),
        "graph": ("Inspect", "translucid.circuits.graph_command:graph"),
    },
)
