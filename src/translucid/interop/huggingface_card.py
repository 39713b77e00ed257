"""The README.md of a model at Hugging Face: facts for its search, then how the model is loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z]+)*")


def model_card(
    kind: str,
    languages: tuple[str | None, str | None],
    told: Mapping[str, str],
    *,
    by_language: bool,
    made_by: str,
) -> str:
    """Return the text.

    Args:
        kind: class of the model.
        languages: codes of source and target, if known.
        told: of a model with many languages, the piece of each.
        by_language: whether each side is told its own, as in M2M100; else the source is told the target's.
        made_by: version of this package.
    """
    both = [code for code in languages if code]
    codes = [code for code in (*both, *told) if _CODE.fullmatch(code)]
    facts = ["library_name: transformers", "pipeline_tag: translation", "tags: [translation]"]
    if codes:
        facts.insert(0, f"language: {json.dumps(list(dict.fromkeys(codes)))}")
    what = " to ".join(both) if len(both) == 2 else "translation"
    more, options, text = "", "", '"…"'
    if by_language:
        some = [*both, *sorted(told)][:2]
        options = f', src_lang="{some[0]}"'
        more = f', forced_bos_token_id=tokenizer.convert_tokens_to_ids("{told[some[-1]]}")'
    elif told:
        name = told.get(languages[1] or "") or min(told.values())
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
