"""`translucid evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from translucid.cli.arguments import EngineOption, pair_up, refuse_to_replace
from translucid.ground.console import Console


def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    test: Annotated[
        list[str] | None, typer.Option("--test", metavar="FILES", help="Sentence pairs to test on.")
    ] = None,
    reference: Annotated[
        list[str] | None, typer.Option("--reference", metavar="FILES", help="More references, one a line.")
    ] = None,
    by_length: Annotated[bool, typer.Option("--by-length", help="Scores by source length as well.")] = False,
    alignments: Annotated[
        Path | None,
        typer.Option(metavar="GOLD", help="Gold word links of --test: error rate of each layer's attention."),
    ] = None,
    keep_best: Annotated[
        bool, typer.Option("--keep-best", help="With --alignments: the run reads its alignments there from now on.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    tokenize: Annotated[str, typer.Option(help="sacreBLEU's tokenizer; none for tokenised text.")] = "13a",
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case.")] = False,
    hypotheses: Annotated[Path | None, typer.Option(help="Write the translations here.")] = None,
    samples: Annotated[
        int, typer.Option(help="Show this many translations, spread evenly, beside their references.", min=0)
    ] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace --hypotheses if it is there.")] = False,
    perplexity: Annotated[bool, typer.Option(help="Also perplexity and accuracy of the references.")] = True,
    split_sentences: Annotated[
        bool, typer.Option("--split-sentences", help="Translate each sentence of a line by itself, as translate does.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
    engine: EngineOption = "auto",
) -> None:
    """Translate a test set and score it: BLEU, chrF and TER with sacreBLEU's signatures; perplexity of the references.

    Each line goes to the model as it is. The perplexity is per token of the model's own vocabulary, end tokens counted:
    it compares models that share a tokenizer.

    **Examples**

        translucid evaluate runs/demo --test runs/demo/phrasebook/test.tsv --by-length

        translucid evaluate runs/es --test test.tsv --beam 5 --json > scores.json

        translucid evaluate runs/demo --test gold.jsonl --alignments gold.jsonl --keep-best

        translucid evaluate runs/de --test 'test.{en,de}' --reference test.2.de --tokenize none
    """
    from translucid.data.corpus import read_lines, read_pairs
    from translucid.evaluation.alignment_error import read_gold
    from translucid.ground.atomic import write_output
    from translucid.ground.errors import UserError
    from translucid.inspection.alignment import choose
    from translucid.inspection.terminal import alignment_table
    from translucid.runs.configuration import checked
    from translucid.scoring import read_alignments_there, score
    from translucid.translator import Translator

    if not test:
        raise UserError("there is nothing to test on", fix="Give sentence pairs with --test FILES.")
    refuse_to_replace(hypotheses, overwrite)
    pairs = list(read_pairs(*pair_up(test)))
    if not pairs:
        raise UserError("holds no sentence pairs", file=test[0], fix="Check the file.")
    others = [list(read_lines(file)) for file in reference or []]
    gold = read_gold(alignments, pairs) if alignments else []
    if keep_best and not alignments:
        raise UserError("--keep-best has nothing to choose by", fix="Give gold word links with --alignments GOLD.")
    translator = Translator.load(run, device, engine)
    if gold and not translator.can_look():
        raise UserError("the model has no attention, so there are no alignments", file=run, fix="Omit --alignments.")
    settings = translator.configuration.decoding
    options = checked(type(settings), {**settings.model_dump(), **({} if beam is None else {"beam": beam})})
    found, texts = score(
        translator,
        pairs,
        options,
        references=others,
        split=split_sentences,
        perplexity=perplexity,
        lengths=by_length,
        tokenize=tokenize,
        lowercase=lowercase,
        console=Console(stderr=True),
    )
    ways = choose(translator.inspect(pairs), gold) if gold else {}
    if hypotheses:
        write_output(hypotheses, "".join(text + "\n" for text in texts).encode())
    if keep_best:
        read_alignments_there(run, translator, ways)
    if as_json:
        record = {**found.to_json(), "beam": options.beam}
        if ways:
            record["alignment"] = [{**way.model_dump(), **error.to_json()} for way, error in ways.items()]
        print(json.dumps(record, ensure_ascii=False, indent=2))
        return
    console = Console()
    for part in found.render():
        console.print(part)
    if ways:
        console.print()
        console.print(alignment_table(ways, translator.configuration.alignment))
    shown = min(samples, len(pairs))
    for i in (k * len(pairs) // shown for k in range(shown)):
        console.print(f"\nsource      {pairs[i].source}\nreference   {pairs[i].target}\nhypothesis  {texts[i]}")
