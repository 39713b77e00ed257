"""The flags that stand for the parameters that messages of the library name.

The library does not know the command line: its messages name a parameter in backticks, such as `beam`, or with a value,
`engine="torch"`. On the command line, the same message says `--beam` and `--engine torch`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager

from translucid.ground.console import Console

_SAME_NAME = """
ablate active adapter alignments beam check choose context device domain engine feature formality keep_references knn
language_piece limit line_length max_length max_tokens method mix model out output pairs pivot port proxies quantization
reading_speed reverse target_text terms terms_mode test text threshold
tokenize tokenizer top_candidates train train_alignments valid valid_general workers
"""
"""Parameters whose flags have their names."""
FLAGS = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAME.split()},
    "address": "--workers ray:{}",
    "begin_from": "--init-from",
    "elmo": "train --elmo",
    "filter_worst": "--reverse RUN:SHARE",
    "form": "--format",
    "interventions": "--ablate or --feature",
    "inflect_terms": "--terms-mode inflect",
    "kind": "--features",
    "memory_from": "--memory FILE:PERCENT",
    "others": "--ensemble",
    "passes": "--dropout-passes",
    "preset": "--student",
    "ranking": "--rerank-with",
    "ray_cluster": "--workers ray",
    "risk_candidates": "--rerank-with mbr:N",
    "sample": "sampling (--temperature, --top-k or --top-p)",
    "separate_lines": "--context none",
    "settings": "--set",
    "split_sentences": "--lines",
    "token_scores": "--format jsonl-tokens",
    "word_level": "--vocabulary teacher",
    "wrapped": "--lines wrapped",
    "source": "--source-language",
    "target": "--target-language",
    "data.tokenizer.vocabulary=N": "--set data.tokenizer.vocabulary=N",
    "key=value": "--set key=value",
    "overwrite=True": "--overwrite",
    "relearn=True": "--relearn",
    "resume=True": "--resume",
    "significance=False": "--no-significance",
    "Translator.ranking": "translate --rerank-with",
    "TranslationMemory.add": "translucid memory add MEMORY FILES --source-language en --target-language es",
    "allow_code": "write translucid --code {} before the command",
    **{f"export_{kind}": f"--to {kind}" for kind in ("ctranslate2", "huggingface", "marian", "onnx")},
    "export_onnx()": "export it --to onnx",
    "fit_alignment": "translucid tune alignments",
    "fit_confidence": "translucid tune confidence",
    "fit_lens": "translucid tune lens",
    "fit_ranking": "translucid tune ranking",
    "generate_passages": "translucid data phrasebook FILE.jsonl --discourse",
    "learn_features": "translucid features RUN --text FILES",
    "keys()": "`translucid models --keys`",
    "shortlists=False": "translucid tune speed",
    "shortlists=True": "translucid tune shortlists",
    "train(out)": "train --out",
    "train(resume=True)": "train --resume",
    "train(resume=True, out": "translucid train --resume --out",
    "training.begin_from": "train --init-from",
}
"""What the command line has for each parameter or function that messages name; `{}` stands for its value."""
SETTINGS_OF = {
    "--source-language": "--set data.source_language=CODE",
    "--target-language": "--set data.target_language=CODE",
}
"""The settings that stand for options, in commands that lack these."""
_NAMES = "|".join(map(re.escape, sorted(FLAGS, key=len, reverse=True)))
REFERENCE = re.compile(rf"`(?P<name>{_NAMES})(?:(?P<opening>[=(])(?P<value>[^`]*))?`")
"""A parameter or function in a message, perhaps with a value, as an argument or after an equals sign."""


def with_flags(message: str) -> str:
    """Return a message of the library with the flags of the parameters that it names.

    >>> with_flags('Use `engine="torch"`, or leave `beam` out.')
    'Use --engine torch, or leave --beam out.'
    """
    return REFERENCE.sub(_flag, message)


def _flag(reference: re.Match[str]) -> str:
    flag, value = FLAGS[reference["name"]], reference["value"]
    if value is None:
        return flag
    if "(" in reference["name"] + reference["opening"]:
        value = value.removesuffix(")")
    value = value.strip('"')
    return flag.format(value) if "{}" in flag else f"{flag} {value}"


def with_own_options(message: str, own: Container[str]) -> str:
    """Return a message that names settings in place of options that the command, with its `own` options, lacks.

    The code that several commands share names the option that most of them have.
    """
    for option, setting in SETTINGS_OF.items():
        if option not in own and "--set" in own:
            message = re.sub(rf"(?<![\w-]){option}(?![\w-])", setting, message)
    return message


@contextmanager
def flags_in_messages() -> Iterator[None]:
    """Within the context, consoles on standard error name flags for the parameters in messages."""
    before, Console.named = Console.named, with_flags
    try:
        yield
    finally:
        Console.named = before
