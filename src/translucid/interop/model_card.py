"""The model card of an export to Hugging Face: README.md, with metadata for the search of the Hub."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath

from bitext.languages import Languages
from translucid import __version__

_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z]+)*")
_METRICS = {"bleu": "BLEU", "chrf": "chrF"}


@dataclass(frozen=True)
class ModelCard:
    """What the card of a model says."""

    kind: str
    """The class of the model in `transformers`."""
    languages: Languages
    """The codes of source and target, where known."""
    pieces: Mapping[str, str]
    """For a multilingual model, the piece of each language."""
    by_language: bool
    """Whether each side has its own language token, as in M2M100; otherwise the source has the target's."""
    longest: int = 512
    """The largest number of tokens of a text."""
    files: Sequence[str] = ()
    """The files of the training text. Only their names are written, as folders may be private."""
    measures: Mapping[str, object] = field(default_factory=dict)
    """The measures of the best validation by name, such as `bleu`, or `bleu.en-fr` for one direction."""

    @property
    def title(self) -> str:
        """The direction, if there is one."""
        codes = [code for code in self.languages if code]
        return " to ".join(codes) if len(codes) == 2 else "translation"

    def scores(self) -> Iterator[tuple[str, str, float]]:
        """Yield the direction, the metric and the value of each score."""
        for name, value in self.measures.items():
            metric, _, direction = name.partition(".")
            if metric in _METRICS and isinstance(value, float):
                yield direction.replace("-", " to ", 1) or self.title, metric, round(value, 2)

    def text(self) -> str:
        """Return the content of README.md."""
        sections = (self._metadata(), self._usage(), self._data(), self._scores(), self._limits())
        return "\n".join(chain.from_iterable(sections))

    def _metadata(self) -> list[str]:
        codes = [code for code in (*self.languages, *self.pieces) if code and _CODE.fullmatch(code)]
        lines = ["---"]
        if codes:
            lines.append(f"language: {json.dumps(list(dict.fromkeys(codes)))}")
        lines += ["library_name: transformers", "pipeline_tag: translation", "tags: [translation]"]
        # Values are in JSON, which is YAML.
        results = []
        for direction, metric, value in self.scores():
            results.append(
                {
                    "task": {"type": "translation", "name": direction},
                    "dataset": {"type": "validation", "name": "validation sentences"},
                    "metrics": [{"type": metric, "name": _METRICS[metric], "value": value}],
                }
            )
        if results:
            lines += ["model-index:", f"- name: {json.dumps(self.title)}", "  results:"]
            lines += [f"  - {json.dumps(result)}" for result in results]
        return [*lines, "---", ""]

    def _usage(self) -> list[str]:
        generate_arguments, options, text = "", "", '"…"'
        if self.by_language:
            names = [*(code for code in self.languages if code), *sorted(self.pieces)][:2]
            options = f', src_lang="{names[0]}"'
            generate_arguments = f', forced_bos_token_id=tokenizer.convert_tokens_to_ids("{self.pieces[names[-1]]}")'
        elif self.pieces:
            name = self.pieces.get(self.languages[1] or "") or min(self.pieces.values())
            text = f'"{name} …"'
        return [
            f"# {self.title}",
            "",
            f"A `{self.kind}`, written by `translucid export --to huggingface` ({__version__}).",
            "",
            "```python",
            "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
            "",
            f'tokenizer = AutoTokenizer.from_pretrained("."{options})',
            'model = AutoModelForSeq2SeqLM.from_pretrained(".")',
            f'batch = tokenizer([{text}], return_tensors="pt", padding=True)',
            f"print(tokenizer.batch_decode(model.generate(**batch{generate_arguments}), skip_special_tokens=True))",
            "```",
            "",
            "`translucid import FOLDER RUN` makes a run of this folder.",
            "",
        ]

    def _data(self) -> list[str]:
        names = [f"`{PurePath(file).name}`" for file in self.files]
        trained = f"Trained on {', '.join(names)}." if names else "The run does not record what it was trained on."
        return ["## Data", "", trained, ""]

    def _scores(self) -> list[str]:
        rows = [f"| {direction} | {_METRICS[metric]} | {value:.2f} |" for direction, metric, value in self.scores()]
        if not rows:
            return ["## Scores", "", "No scores are recorded.", ""]
        return [
            "## Scores",
            "",
            "| direction | metric | score |",
            "| --- | --- | ---: |",
            *rows,
            "",
            "sacreBLEU on validation sentences, with greedy search. The weights were selected on these sentences,",
            "which makes the scores slightly optimistic: measure on a test set of your own.",
            "",
        ]

    def _limits(self) -> list[str]:
        return [
            "## Limits",
            "",
            f"A text may have {self.longest:,} tokens. Text that differs from the training data is translated worse.",
            "Translations can be fluent and wrong; a person should check those that matter. Biases of the training",
            "data were not measured. This card names no licence: add `license:` above before you publish the model.",
            "",
        ]
