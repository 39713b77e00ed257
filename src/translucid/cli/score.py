"""`translucid score`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.run_kinds import translator_of
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.api.translator import Translator


def score(
    run: option.Run,
    files: Annotated[list[str], Argument(metavar="FILES", help="Sentence pairs.")],
    tokens: Annotated[bool, Option("--tokens", help="Add each token with its log-probability.")] = False,
    contrast: Annotated[
        bool, Option("--contrast", help="Report how often targets are more probable than the contrasts of a .jsonl.")
    ] = False,
    output_format: Annotated[
        option.Format, Option("--format", help="text: log-probability, tab, perplexity; jsonl: with the texts.")
    ] = "text",
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    formality: option.Formality = None,
    device: option.Device = "auto",
) -> None:
    """Score given translations by forced decoding: one line for each pair, in order.

    A line has the log-probability of the target given its source, in nats, and the perplexity per token of the model's
    own vocabulary, including the end token. Pairs with a blank source, pairs that are too long for the model and
    unreadable lines yield an empty line; jsonl gives the reason. Standard error has the perplexity of all pairs.

    With --contrast, FILES is one .jsonl file with `contrast`, a translation that is wrong after the sentences before it
    in the `document`. The shares of sentences whose target is more probable are printed, with document context and
    without (docs/evaluation.md); with jsonl, a record for each row.

    Each text goes to the model as it is. Scores are computed in float32, also on a GPU.

    **Examples**

        translucid score runs/demo runs/demo/phrasebook/test.tsv > scores.tsv

        translucid score runs/es 'test.{en,es}' --tokens --format jsonl

        translucid score runs/es memory.tsv | paste - memory.tsv | sort -n | head

        translucid score runs/context passages.jsonl --contrast
    """
    from translucid.api.evaluation.scoring import index_of
    from translucid.jobs.scoring_pairs import ScoredSum, score_lines

    if contrast and (tokens or len(files) > 1):
        raise UserError("--contrast takes one file and no --tokens", fix="Leave out the others.")
    corpora = [] if contrast else pair_up(files)
    translator = translator_of(run, (source_language, target_language), device, "torch").with_formality(formality)
    if contrast:
        _score_contrasts(translator, files[0], output_format)
        return
    console = Console(stderr=True)
    total, index = ScoredSum(), index_of(translator)
    with progress_bar(console, "scoring", None) as advance:
        for line in score_lines(translator, corpora, advance, index):
            total.add(line)
            if output_format == "jsonl":
                print(json.dumps(line.to_json(translator, tokens), ensure_ascii=False))
            else:
                print(line.to_text(translator, tokens))
    console.print(str(total), soft_wrap=True)
    console.print(str(total.seen_report(index)), soft_wrap=True)
    if total.bad:
        fix = "Correct them; --format jsonl says what is wrong."
        raise UserError(f"{total.bad:,} lines are no sentence pairs and have no score", file=files[0], fix=fix)


def _score_contrasts(translator: Translator, file: str, output_format: str) -> None:
    """Print how often the right translation is more probable than its contrast."""
    from translucid.api.evaluation.contrast import preferences
    from translucid.evaluation.contrast import contrast_rows, contrast_table, read_contrasts

    if translator.configuration.data.reverse:
        fix = "Give them for a run of the other direction."
        raise UserError("contrasts are for runs that read pairs as they stand", file=translator.run, fix=fix)
    pairs, contrasts = read_contrasts(file)
    total = len(contrasts) * (4 if translator.pipeline.context else 2)
    with progress_bar(Console(stderr=True), "scoring", total) as advance:
        rows = contrast_rows(preferences(translator, pairs, contrasts, advance))
    if output_format == "jsonl":
        for row in rows:
            print(json.dumps(row._asdict()))
    else:
        Console().print(contrast_table(rows))
