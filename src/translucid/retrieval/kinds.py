"""The record of retrieval in the decoder in the table of the core, `models/kinds.py`."""

from translucid.models.kinds import Extension

RETRIEVAL = Extension(methods={"with_knn": "translucid.retrieval.engine:with_knn"})
