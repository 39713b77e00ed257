"""The record of live translation in the table of the core, `models/kinds.py`."""

from translucid.models.kinds import Extension

LIVE = Extension(methods={"live": "translucid.live.session:live"})
