"""The record of live translation in the table of the core, `models/kinds.py`, and the names of its policies."""

from typing import Literal, TypeAlias

from translucid.models.kinds import Extension

PolicyName: TypeAlias = Literal["alignatt", "edatt", "wait-k", "agreement", "whole"]
"""The name of a policy of `live.policies`."""

LIVE = Extension(
    methods={"live": "translucid.live.session:live"},
    commands={"live": ("Translate", "translucid.live.commands:live")},
)
