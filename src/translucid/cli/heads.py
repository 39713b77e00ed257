"""`translucid heads`.

**Examples**

    translucid heads runs/demo --valid runs/demo/phrasebook/valid.tsv

    translucid heads runs/demo --valid dev.tsv --save heads.png

    translucid heads opus-mt-en-de --valid dev.{en,de} --sentences 100 --beam 1 --mean --json
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

from typer import Option

from translucid.cli import option
from translucid.cli.arguments import pair_up
from translucid.cli.printing import print_scores, with_examples
from translucid.cli.run_kinds import configuration_of, translator_of
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection.rendering.file_formats import PICTURES


class Measuring(NamedTuple):
    """Measuring."""

    valid: Annotated[list[str], option.files("Sentence pairs on which heads are measured.")]
    sentences: Annotated[int, Option(help="The number of pairs, from the beginning.", min=1)] = 500
    mean: Annotated[bool, Option("--mean", help="Replace heads by their mean over the pairs, not by 0.")] = False
    beam: option.Beam = None
    device: option.Device = "auto"


class Output(NamedTuple):
    """Output."""

    as_json: option.Json = False
    save: Annotated[Path | None, option.to_save("Draw the results, as .png, .svg or .pdf.", *PICTURES)] = None
    overwrite: option.Overwrite = False


@with_examples(__doc__)
def heads(run: option.Run, *, measuring: Measuring, output: Output, languages: option.Languages) -> None:
    """Measure how much a translator needs each of its attention heads, and its quality without the least important.

    The quality is BLEU, or chrF where BLEU can't distinguish translations, as of single words.

    The importance of a head is measured in two ways: by the gradient of the loss L with respect to a gate on the head's
    output, and by how much L grows with the head off. L is -log p of a reference in nats, given its source.

    All pairs are translated about 20 times, with our own engine. `translate --ablate` and `look --ablate` switch off
    single heads.
    """
    from bitext.pair import Pair
    from translucid.api.evaluation.heads import head_report
    from translucid.runs.corpus_files import pairs_of

    configuration = configuration_of(run)
    if configuration.model.reads != "text":
        what = "is no translator, and heads are measured by translation"
        fix = "In Python, `handling` replaces heads of any model (docs/interventions.md)."
        raise UserError(what, file=run, fix=fix)
    configuration = configuration.between(*languages)
    options = configuration.decoding_with({"beam": measuring.beam})
    translator = translator_of(run, languages, measuring.device, "torch")
    pairs: list[Pair] = list(pairs_of(configuration.data, *pair_up(measuring.valid)))[: measuring.sentences]
    report = head_report(translator, pairs, options, mean=measuring.mean, console=Console(stderr=True))
    print_scores(report, as_json=output.as_json)
    if output.save:
        from translucid.inspection.plots import draw_head_report, save_figure

        save_figure(draw_head_report(report), output.save)
        Console(stderr=True).print(f"saved: {output.save}", soft_wrap=True)
