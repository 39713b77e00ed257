"""`translucid align`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.run_kinds import configuration_of, translator_of
from translucid.ground.atomic import write_output
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.kernels.machine import has_pytorch, require_pytorch
from translucid.layers.variants import Method

if TYPE_CHECKING:
    from bitext.languages import Languages
    from bitext.pair import Pair
    from translucid.api.translator import Translator
    from translucid.engines.choosing import EngineName
    from translucid.evaluation.alignment_error import AlignmentOptions, Links
    from translucid.inspection.word_weights import WordWeights


def align(
    run: Annotated[
        Path | None, Argument(metavar="[RUN]", callback=option.resolved, help="A run; --statistics needs none.")
    ] = None,
    *,
    pairs: Annotated[list[str] | None, option.files("Sentence pairs to align.")] = None,
    reverse: Annotated[Path | None, option.run("A run of the reverse direction, to combine with.")] = None,
    layer: Annotated[int | None, Option(help="The decoder layer to read; the run decides if not given.")] = None,
    method: Annotated[
        Method | None, Option(help="Read weights, those of content words, norms or contributions (ALTI).")
    ] = None,
    shift: Annotated[bool | None, Option("--shift/--no-shift", help="Read the row one step later (SHIFT-ATT).")] = None,
    both: Annotated[bool | None, Option("--both/--one-side", help="Combine both sides by grow-diagonal.")] = None,
    statistics: Annotated[
        bool, Option("--statistics", help="Link by statistics of these pairs and the training pairs instead.")
    ] = False,
    output: option.Output = None,
    overwrite: option.Overwrite = False,
    source_language: option.SourceLanguage = None,
    target_language: option.TargetLanguage = None,
    device: option.Device = "auto",
) -> None:
    """Align the words of sentence pairs: one line of `0-0 1-2` for each pair (source word first, counted from 0).

    The alignment is read from the attention during forced decoding of the target, or from the alignment layer of
    `translucid tune alignments` unless --layer, --method or --shift is given.

    --statistics asks no model: a statistical aligner learns from the pairs themselves and, if a run is given, from up
    to 20,000 of its training pairs. It is more accurate for many pairs of another domain than the training text.

    **Examples**

        translucid align runs/demo --pairs runs/demo/phrasebook/test.tsv > test.align

        translucid align runs/en-es --reverse runs/es-en --pairs pairs.tsv --layer 1 --shift

        translucid align --pairs memory.tmx:en-es --statistics
    """
    from translucid.evaluation.alignment_error import to_pharaoh

    if not pairs:
        raise UserError("there is nothing to align", fix="Give sentence pairs with --pairs FILES.")
    changes = {"layer": layer, "method": method, "shift": shift, "both": both}
    if statistics and (reverse or set(changes.values()) != {None}):
        what = "--statistics does not ask a model"
        raise UserError(what, fix="Leave out --reverse, --layer, --method, --shift and --both, or --statistics.")
    if not run and not statistics:
        raise UserError("there is no run whose attention is read", fix="Name one, or give --statistics.")
    files, languages = pair_up(pairs), (source_language, target_language)
    if statistics or run is None:
        require_pytorch("--statistics")
        links = _by_statistics(run, files, languages)
    else:
        links = _by_attention(run, reverse, files, languages, changes, device)
    lines = [to_pharaoh(pair_links) + "\n" for pair_links in links]
    if output:
        write_output(output, "".join(lines).encode())
    else:
        print("".join(lines), end="")


def _by_statistics(run: Path | None, files: Sequence[str], languages: Languages) -> list[Links]:
    """Return the links that a statistical aligner learns from these pairs and from a run's training pairs, if any."""
    from translucid.api.fitting.alignment_fitting import training_sample
    from translucid.inspection.statistical_alignment import statistical_links
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.data_options import DataOptions

    log = Console(stderr=True)
    with log.status("linking words by statistics"):
        corpus: list[Pair] = []
        if run:
            options = configuration_of(run, "text").data.between(*languages)
            corpus = training_sample(options)
            if options.train and not corpus:
                message = f"{options.train[0]} is not there any more, so the links come from these pairs alone"
                log.print(message, soft_wrap=True)
        else:
            options = DataOptions(source_language=languages[0], target_language=languages[1])
        texts = list(pairs_of(options, *files))
        links = statistical_links([*texts, *corpus], len(texts))
    return [sorted(alignment.possible) for alignment in links]


def _by_attention(
    run: Path, reverse: Path | None, files: Sequence[str], languages: Languages, changes: dict[str, Any], device: str
) -> list[Links]:
    """Return the links that are read from the attention; `changes`: the given options, None for those of the run."""
    from translucid.evaluation.alignment_error import AlignmentOptions
    from translucid.runs.corpus_files import pairs_of
    from translucid.runs.settings import without_none

    engine: EngineName = "torch" if has_pytorch() else "ctranslate2"
    forward = translator_of(run, languages, device, engine)
    texts = list(pairs_of(forward.configuration.data, *files))
    backward = translator_of(reverse, (None, None), device, engine) if reverse else None
    changes = without_none(changes)
    if changes.get("method") == "contributions":
        require_pytorch("--method contributions")
    if changes.keys() & {"layer", "method", "shift"}:  # read the attention instead of the alignment layer
        changes["learned"] = False
    if changes.keys() & {"layer", "method"}:  # read all heads unless the layer and method are the run's own
        changes["head"] = None
    options = AlignmentOptions(**{**forward.configuration.alignment.model_dump(), **changes})
    links = []
    with progress_bar(Console(stderr=True), "aligning", len(texts)) as advance:
        reverse_weights: Iterable[WordWeights | None] = repeat(None, len(texts))
        if backward:
            reverse_weights = _weights(backward, [pair.swapped for pair in texts], options)
        for forward_weights, backward_weights in zip(
            _weights(forward, texts, options, advance), reverse_weights, strict=True
        ):
            links.append(forward_weights.links(both=options.both, reverse=backward_weights))
    return links


def _weights(
    translator: Translator,
    texts: Sequence[Pair],
    options: AlignmentOptions,
    on_done: Callable[[int], None] | None = None,
) -> Iterator[WordWeights]:
    """Yield the weights between the words of each pair; `on_done` is called with the number of finished pairs."""
    if has_pytorch():
        from translucid.inspection.alignment import weights_of

        contributions = options.reads_contributions(translator.inspector.alignment_layer is not None)
        for inspected in translator.inspector.inspect_all(texts, on_done, contributions=contributions):
            yield weights_of(inspected, options)
        return
    for text, pair in zip(texts, translator.pipeline.pairs(texts), strict=True):
        (weights,) = translator.inspector.word_weights([pair], options)
        yield weights._replace(words_read=translator.inspector.words_read(*text))
        if on_done:
            on_done(1)
