"""Standard terms are used in the files that implement them, and private words for them are not used."""

import ast
import re
from pathlib import Path

import translucid

SOURCE = Path(translucid.__file__).parent
ROOT = Path(__file__).resolve().parents[2]

WHERE = {
    "language model": "models/language/model.py",
    "terminology": "terminology/term.py",
    "terminology constraint": "terminology/term_forms.py",
    "constrained beam search": "decoding/constraints.py",
    "forced decoding": "inspection/forced_decoding.py",
    "teacher forcing": "models/protocol.py",
    "logits": "models/protocol.py",
    "rate limit": "serving/edge/rate_limits.py",
    "request queue": "serving/queue/batcher.py",
    "fair scheduling": "serving/queue/fair_scheduler.py",
    "quality estimation": "evaluation/confidence/estimator.py",
    "tag projection": "documents/tag_projection.py",
    "hypothesis": "decoding/hypothesis.py",
    "beam search": "decoding/beam.py",
    "greedy search": "decoding/sampling.py",
    "nucleus sampling": "decoding/sampling.py",
    "length normalisation": "decoding/limits.py",
    "n-best": "decoding/hypothesis.py",
    "lexical shortlist": "decoding/shortlist.py",
    "minimum Bayes risk": "engines/minimum_risk.py",
    "noisy channel": "engines/noisy_channel.py",
    "label smoothing": "training/objective.py",
    "learning rate": "training/schedule.py",
    "gradient accumulation": "training/trainer.py",
    "knowledge distillation": "training/stay_close.py",
    "sequence-level knowledge distillation": "distillation/distilling.py",
    "catastrophic forgetting": "training/stay_close.py",
    "gradual unfreezing": "training/layers.py",
    "self-critical": "training/self_critical.py",
    "all-reduce": "training/workers.py",
    "FSDP": "training/sharding.py",
    "low-rank": "layers/low_rank.py",
    "positional encoding": "layers/positions.py",
    "multi-head attention": "attention/multi_head.py",
    "causal": "attention/masks.py",
    "image encoder": "models/captioner/image_encoder.py",
    "subword regularisation": "data/tokenizing/subword_dropout.py",
    "tokenizer": "data/tokenizing/tokenizer.py",
    "sentence segmentation": "data/sentences.py",
    "placeholder": "data/placeholders.py",
    "translation memory": "memory/translation_memory.py",
    "fuzzy match": "memory/match.py",
    "word alignment": "inspection/alignment.py",
    "alignment error rate": "evaluation/alignment_error.py",
    "integrated gradients": "inspection/explain/explanation.py",
    "saliency": "inspection/saliency_overlay.py",
    "back-translation": "jobs/back_translating.py",
    "confidence calibration": "evaluation/confidence/fitting.py",
    "atomic": "ground/atomic.py",
    "cancellation": "ground/cancellation.py",
}
"""Standard terms, and the file whose docstrings must contain them."""

BANNED = ("models? of language", "heed", "heeds", "heeding", "heeded", "Desk", "Errand", "Workshop", "gone on with")
"""Private words that formerly stood for standard terms."""


def docstrings(file: Path) -> str:
    """Return all docstrings of a file, on one line each, in lower case."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)]
    texts = [ast.get_docstring(node) or "" for node in nodes]
    return "\n".join(" ".join(text.split()).lower() for text in texts)


def test_each_term_leads_to_its_file():
    assert len(WHERE) >= 40
    wrong = [f"{term}: {file}" for term, file in WHERE.items() if term.lower() not in docstrings(SOURCE / file)]
    assert not wrong


def test_private_words_for_standard_terms_are_not_used():
    pattern = re.compile(r"\b(" + "|".join(BANNED) + r")\b")
    folders = ("src", "tests", "docs", "benchmarks", "recipes", "notebooks")
    kinds = {".py", ".md", ".yaml", ".js", ".css", ".html", ".ipynb"}
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in kinds]
    hits = []
    for file in [*files, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        if file == Path(__file__):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if pattern.search(line):
                hits.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not hits
