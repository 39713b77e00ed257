"""placeholder filter, replaced by the corpus helper"""
from collections import Counter
from pydantic import BaseModel, ConfigDict
class Filter(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
class Skipped:
    def __init__(self): self.kept=0; self.reasons=Counter()
    def add(self, reason, n=1): self.reasons[reason]+=n
    def summary(self): return f"{self.kept:,} pairs; skipped {dict(self.reasons)}"
def keep(pairs, filter, skipped):
    for p in pairs:
        if not p.source.strip() or not p.target.strip(): skipped.add("empty"); continue
        skipped.kept+=1; yield p
