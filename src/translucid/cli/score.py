"""`translucid score`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from translucid.cli.arguments import Format, RunArgument, SourceOption, TargetOption, pair_up
from translucid.ground.console import Console


def score(
    run: RunArgument,
    files: Annotated[list[str], typer.Argument(metavar="FILES", help="Sentence pairs.")],
    tokens: Annotated[bool, typer.Option("--tokens", help="Add each token with its log-probability.")] = False,
    output_format: Annotated[
        Format, typer.Option("--format", help="text: log-probability, a tab and perplexity; or jsonl with the texts.")
    ] = Format.text,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Score given translations by forced decoding: one line for each pair, in order.

    A line has the log-probability of the target given its source, in nats, and the perplexity per token of the model's
    own vocabulary, end token counted. A pair whose source is blank, one that is too long for the model and a line that
    can't be read have an empty line; jsonl says why. The perplexity of all pairs together stands on standard error.

    Each text goes to the model as it is. All is reckoned in float32, on a GPU too.

    **Examples**

        translucid score runs/demo runs/demo/phrasebook/test.tsv > scores.tsv

        translucid score runs/es 'test.{en,es}' --tokens --format jsonl

        translucid score runs/es memory.tsv | paste - memory.tsv | sort -n | head
    """
    from translucid.api.translator import Translator
    from translucid.ground.console import counting
    from translucid.ground.errors import UserError
    from translucid.jobs.scoring_pairs import ScoredSum, score_lines

    corpora = pair_up(files)
    translator = Translator.load(run, device, "torch", source=source_language, target=target_language)
    console = Console(stderr=True)
    total = ScoredSum()
    with counting(console, "scoring", None) as advance:
        for line in score_lines(translator, corpora, advance):
            total.add(line)
            if output_format is Format.jsonl:
                print(json.dumps(line.to_json(translator, tokens), ensure_ascii=False))
            else:
                print(line.to_text(translator, tokens))
    console.print(str(total), soft_wrap=True)
    if total.bad:
        fix = "Correct them; --format jsonl says what is wrong."
        raise UserError(f"{total.bad:,} lines are no sentence pairs and have no score", file=files[0], fix=fix)
