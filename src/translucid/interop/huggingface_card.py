"""The README.md of a model at Hugging Face: metadata for its search, and how to load the model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z]+)*")


def model_card(
    kind: str,
    languages: tuple[str | None, str | None],
    pieces: Mapping[str, str],
    *,
    by_language: bool,
    made_by: str,
) -> str:
    """Return the text of the card.

    Args:
        kind: the class of the model.
        languages: the codes of source and target, where known.
        pieces: for a multilingual model, the piece of each language.
        by_language: whether each side has its own language token, as in M2M100; otherwise the source has the target's.
        made_by: the version of this package.
    """
    both = [code for code in languages if code]
    codes = list(filter(_CODE.fullmatch, [*both, *pieces]))
    facts = ["library_name: transformers", "pipeline_tag: translation", "tags: [translation]"]
    if codes:
        facts.insert(0, f"language: {json.dumps(list(dict.fromkeys(codes)))}")
    what = " to ".join(both) if len(both) == 2 else "translation"
    more, options, text = "", "", '"…"'
    if by_language:
        some = [*both, *sorted(pieces)][:2]
        options = f', src_lang="{some[0]}"'
        more = f', forced_bos_token_id=tokenizer.convert_tokens_to_ids("{pieces[some[-1]]}")'
    elif pieces:
        name = pieces.get(languages[1] or "") or min(pieces.values())
        text = f'"{name} …"'
    lines = [
        "---",
        *facts,
        "---",
        "",
        f"# {what}",
        "",
        f"A `{kind}`, written by `translucid export --to huggingface` ({made_by}).",
        "",
        "```python",
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer",
        "",
        f'tokenizer = AutoTokenizer.from_pretrained("."{options})',
        'model = AutoModelForSeq2SeqLM.from_pretrained(".")',
        f'batch = tokenizer([{text}], return_tensors="pt", padding=True)',
        f"print(tokenizer.batch_decode(model.generate(**batch{more}), skip_special_tokens=True))",
        "```",
        "",
    ]
    return "\n".join(lines)
