"""`translucid evaluate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from translucid.cli.arguments import (
    EngineOption,
    InflectTermsOption,
    RunArgument,
    SourceOption,
    TargetOption,
    TermsModeOption,
    TermsOption,
    TokenizeOption,
    WithOption,
    pair_up,
    refuse_to_replace,
)
from translucid.ground.console import Console

if TYPE_CHECKING:
    from translucid.runs.configuration import Configuration


def evaluate(
    run: RunArgument,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="[FILES]", help="What to test on, as with --test.")
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option("--test", metavar="FILES", help="Sentence pairs, or texts, to test on.")
    ] = None,
    images: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILES", help="For captions: folders and .tar files with the images of --test."),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="GOLD", help="For captions: boxes of what is in the images, as `data scenes` writes them."
        ),
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
    terms: TermsOption = None,
    inflect_terms: InflectTermsOption = False,
    terms_mode: TermsModeOption = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    source_language: SourceOption = None,
    target_language: TargetOption = None,
    beam: Annotated[int | None, typer.Option(help="Beam width; 1 is greedy.")] = None,
    tokenize: TokenizeOption = None,
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
    beside: WithOption = None,
) -> None:
    """Translate a test set and score it: BLEU, chrF and TER with sacreBLEU's signatures, perplexity of the references.

    Each line goes to the model as it is. The perplexity is per token of the model's own vocabulary, end tokens counted:
    it compares models that share a tokenizer.

    **Examples**

        translucid evaluate runs/demo --test runs/demo/phrasebook/test.tsv --by-length

        translucid evaluate runs/es --test test.tsv --beam 5 --json > scores.json

        translucid evaluate runs/demo --test gold.jsonl --alignments gold.jsonl --keep-best

    With --terms, how many of these are used, with and without terminology constraints.

        translucid evaluate runs/es --test test.tsv --terms terms.tsv --inflect-terms

        translucid evaluate runs/de --test 'test.{en,de}' --reference test.2.de --tokenize none

    A run that writes captions is scored as papers do, with all references that --test has for an image: BLEU-1 to 4,
    CIDEr-D; with --gold also by whether it looks at what it speaks of.

        translucid evaluate runs/eyes --test test.tsv --images photographs.tar --beam 5

    A run that classifies texts is scored by accuracy, F1, what is taken for what, and calibration; --samples shows
    errors, those first of which the model is surest.

        translucid evaluate runs/mood --test labelled.jsonl --ensemble runs/mood-backwards --samples 5
    A language model is scored by how well it foretells texts: perplexity a word and bits a character, which compare
    models of any vocabulary.

        translucid evaluate runs/english articles.txt
    """
    from translucid.api.scoring import save_alignment_options, score, score_terms
    from translucid.api.translator import Translator
    from translucid.cli.images import refuse_for
    from translucid.cli.texts import evaluate_labels
    from translucid.data.readers.corpus import read_lines
    from translucid.data.readers.standard_input import refuse_twice
    from translucid.engines.combinations import refuse_together
    from translucid.evaluation.alignment_error import read_gold
    from translucid.ground.atomic import write_output
    from translucid.ground.errors import UserError
    from translucid.inspection.alignment import choose
    from translucid.inspection.terminal import alignment_table
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.run_folder import RunFolder
    from translucid.terminology.term_score import terms_table

    if not (test := [*(files or []), *(test or [])]):
        raise UserError("there is nothing to test on", fix="Give sentence pairs with --test FILES.")
    refuse_twice(test, reference)
    refuse_together({"--terms": terms, "--inflect-terms": inflect_terms, "--terms-mode": terms_mode != "auto"})
    refuse_to_replace(hypotheses, overwrite)
    beside = beside or []
    folder = RunFolder(run)
    configuration = folder.configuration().between(source_language, target_language)
    about: dict[str, object] = {"--reference": reference, "--by-length": by_length, "--alignments": alignments}
    about |= {"--keep-best": keep_best, "--split-sentences": split_sentences, "--terms": terms}
    if configuration.model.reads == "images":
        refuse_for("texts", {**about, "--ensemble": beside})
        evaluate_captions(
            run, configuration, test, images, gold, as_json, beam, hypotheses, samples, perplexity, device
        )
        return
    if configuration.model.reads == "texts with labels":
        refuse_for("translations", {**about, "--beam": beam, "--images": images, "--gold": gold})
        evaluate_labels([run, *beside], test, as_json, hypotheses, samples, device)
        return
    if configuration.model.reads == "running text":
        sourced: dict[str, object] = {**about, "--images": images, "--gold": gold, "--hypotheses": hypotheses}
        sourced |= {"--beam": beam, "--samples": samples, "--ensemble": beside}
        if given := next((name for name, value in sourced.items() if value), None):
            raise UserError(f"{given} is for models that write about a source", fix="Leave it out.")
        evaluate_texts(run, configuration, test, as_json, device)
        return
    refuse_for("images", {"--images": images, "--gold": gold})
    pairs = list(pairs_of(configuration.data, *pair_up(test)))
    if not pairs:
        raise UserError("holds no sentence pairs", file=test[0], fix="Check the file.")
    more = [list(read_lines(file)) for file in reference or []]
    if alignments and configuration.data.reverse:
        fix = "Give them for a run of the other direction."
        raise UserError("gold word links are for runs that read pairs as they stand", file=run, fix=fix)
    links = read_gold(alignments, pairs) if alignments else []
    if keep_best and not alignments:
        raise UserError("--keep-best has nothing to choose by", fix="Give gold word links with --alignments GOLD.")
    translator = Translator.open(folder, configuration, device, engine, others=beside)
    constrained = translator.with_terms(terms, inflect=inflect_terms, mode=terms_mode) if terms else None
    if links and not translator.can_look():
        raise UserError("the model has no attention, so there are no alignments", file=run, fix="Omit --alignments.")
    options = configuration.searching({"beam": beam})
    found, texts = score(
        translator,
        pairs,
        options,
        references=more,
        split=split_sentences,
        perplexity=perplexity,
        lengths=by_length,
        tokenize=tokenize,
        lowercase=lowercase,
        console=Console(stderr=True),
    )
    ways = choose(translator.inspect(pairs), links) if links else {}
    heard = None
    if constrained and constrained.terms:
        log = Console(stderr=True)
        both = translator, constrained, constrained.terms
        heard = score_terms(*both, pairs, options, references=more, split=split_sentences, console=log)
    if hypotheses:
        write_output(hypotheses, "".join(text + "\n" for text in texts).encode())
    if keep_best:
        save_alignment_options(run, ways)
    if as_json:
        record = {**found.to_json(), "beam": options.beam}
        if ways:
            record["alignment"] = [{**way.model_dump(), **error.to_json()} for way, error in ways.items()]
        if heard:
            record["terms"] = dict(zip(("unconstrained", "constrained"), (one.to_json() for one in heard), strict=True))
        print(json.dumps(record, ensure_ascii=False, indent=2))
        return
    console = Console()
    for part in found.render():
        console.print(part)
    if heard:
        console.print()
        console.print(terms_table(*heard))
    if ways:
        console.print()
        console.print(alignment_table(ways, translator.configuration.alignment.of(any(way.learned for way in ways))))
    shown = min(samples, len(pairs))
    for i in (k * len(pairs) // shown for k in range(shown)):
        console.print(f"\nsource      {pairs[i].source}\nreference   {pairs[i].target}\nhypothesis  {texts[i]}")


def evaluate_texts(run: Path, configuration: Configuration, test: list[str], as_json: bool, device: str) -> None:
    """The same for a language model; see `evaluate`."""
    from translucid.api.generator import Generator
    from translucid.data.filtering import Skipped
    from translucid.data.readers.texts import keep_texts, read_texts
    from translucid.ground.errors import UserError
    from translucid.runs.run_folder import RunFolder

    texts = [text.source for text in keep_texts(read_texts(*test), Skipped("text"))]
    if not texts:
        raise UserError("holds no texts", file=test[0], fix="Check the file.")
    generator = Generator.open(RunFolder(run), configuration, device)
    with Console(stderr=True).status("reading the texts"):
        found = generator.evaluate(texts)
    if as_json:
        print(json.dumps(found.to_json(), indent=2))
        return
    console = Console()
    for part in found.render():
        console.print(part)


def evaluate_captions(
    run: Path,
    configuration: Configuration,
    test: list[str],
    images: list[Path] | None,
    gold: Path | None,
    as_json: bool,
    beam: int | None,
    hypotheses: Path | None,
    samples: int,
    perplexity: bool,
    device: str,
) -> None:
    """The same for a run that writes captions; see `evaluate`."""
    from translucid.api.caption_scoring import score_captions
    from translucid.api.captioner import Captioner
    from translucid.data.images.image_files import ImageFiles
    from translucid.data.readers.corpus import read_pairs
    from translucid.evaluation.scene_gold import read_gold
    from translucid.ground.atomic import write_output
    from translucid.ground.errors import UserError
    from translucid.runs.run_folder import RunFolder

    pairs = list(read_pairs(*test))
    if not pairs:
        raise UserError("holds no captions", file=test[0], fix="Check the file.")
    files = ImageFiles.open(images or list(dict.fromkeys(Path(file).parent for file in test)))
    boxes = read_gold(gold) if gold else None
    captioner = Captioner.open(RunFolder(run), configuration, device)
    options = configuration.searching({"beam": beam})
    log = Console(stderr=True)
    found, texts = score_captions(captioner, pairs, files, options, perplexity=perplexity, gold=boxes, console=log)
    if hypotheses:
        write_output(hypotheses, "".join(f"{name}\t{text}\n" for name, text in texts.items()).encode())
    if as_json:
        print(json.dumps({**found.to_json(), "beam": options.beam}, ensure_ascii=False, indent=2))
        return
    console = Console()
    for part in found.render():
        console.print(part)
    shown, names = min(samples, len(texts)), list(texts)
    for name in (names[k * len(names) // shown] for k in range(shown)):
        references = [pair.target for pair in pairs if pair.source == name]
        console.print(f"\nimage       {name}")
        for text in references:
            console.print(f"reference   {text}")
        console.print(f"caption     {texts[name]}")
