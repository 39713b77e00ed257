"""The record of live translation in the table of the core, `models/kinds.py`, and the names of its policies."""

from typing import Literal, TypeAlias

from translucid.models.kinds import Extension, PageSection

PolicyName: TypeAlias = Literal["alignatt", "edatt", "wait-k", "agreement", "whole"]
"""The name of a policy of `live.policies`."""

_ROUTES, _FIELDS = "translucid.live.routes:LiveRoutes", "translucid.live.fields"
LIVE = Extension(
    methods={"live": "translucid.live.session:live"},
    commands={"live": ("Translate", "translucid.live.commands:live")},
    routes={
        "POST /live": (f"{_ROUTES}.open", f"{_FIELDS}:LiveFields"),
        "POST /live/{session}": (f"{_ROUTES}.send", f"{_FIELDS}:PartFields"),
        "GET /live/{session}": (f"{_ROUTES}.events", f"{_FIELDS}:EventFields"),
        "GET /live": (f"{_ROUTES}.overlay", f"{_FIELDS}:OverlayFields"),
    },
    sockets={"/live": f"{_ROUTES}.socket"},
    settings={"live": "translucid.live.fitting:chosen_settings"},
    section=PageSection(
        name="live",
        label="Live",
        module="live_section.js",
        files="translucid.live.saved_page:section_files",
    ),
)
