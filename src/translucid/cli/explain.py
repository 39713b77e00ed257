"""`translucid explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from translucid.ground.console import Console


def explain(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder that `translucid train` wrote.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to translate.")],
    target: Annotated[str | None, typer.Option(help="Explain this instead of the model's own translation.")] = None,
    method: Annotated[str, typer.Option(help="erasure, lime, gradients or attention.")] = "erasure",
    samples: Annotated[int, typer.Option(help="Of LIME: sources with random words left out.", min=10)] = 500,
    k: Annotated[int, typer.Option("--k", help="Source words taken away or kept to test the explanation.", min=1)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.")] = "auto",
) -> None:
    """Say for each word written which source words it depends on, and test whether that is true.

    Attention shows where the model looked. These methods ask what happens when source words are not there: erasure
    leaves out one word at a time, LIME fits a linear model to many such sources, gradients go the way from no words to
    these. LIME and gradients need the packages of the extra `explain`. A text of several sentences is explained
    sentence by sentence.

    The test leaves out the words said to matter, or all others, and measures how far the log-probability of the target
    word falls; the same for random words, to compare with.

    **Examples**

        translucid explain runs/demo "I like soccer"

        translucid explain runs/demo "I like soccer" --json

        translucid explain runs/demo "I like soccer" --method lime
    """
    from translucid.ground.errors import UserError
    from translucid.inspection.explain import explain as explaining
    from translucid.inspection.explain import faithfulness, refuse_method
    from translucid.inspection.explain.case import Case
    from translucid.inspection.terminal import importance_table
    from translucid.translator import Translator

    refuse_method(method)
    if not text.strip() or (target is not None and not target.strip()):
        raise UserError("there are no words to explain", fix="Give a text with words in it.")
    translator = Translator.load(run, device)
    if method == "attention" and not translator.can_look():
        raise UserError("the model has no attention", file=run, fix="Use --method erasure.")
    console = Console()
    for source, written in translator.translate(text).sentences if target is None else [(text, target)]:
        case = Case(translator.model, translator.tokenizer, source, written)
        found = explaining(case, method, samples=samples)
        tested = {method: found, "random": explaining(case, "random")}
        scores = {name: faithfulness(case, one, k) for name, one in tested.items()}
        if as_json:
            record = {
                "source": found.source,
                "target": found.target,
                "method": method,
                "importance": [[round(x, 5) for x in row] for row in found.importance.tolist()],
                "fit": [round(x, 4) for x in found.fit],
                "faithfulness": {name: score._asdict() for name, score in scores.items()},
            }
            print(json.dumps(record, ensure_ascii=False))
            continue
        console.print(Text(f"{written}\n", "bold"))
        console.print(importance_table(found.source, found.target, found.importance, found.fit))
        console.print(f"\nlog-probability lost, in nats, with the {k} most important source words of each word")
        for name, score in scores.items():
            console.print(f"  {name:10} left out {score.comprehensiveness:6.2f}   alone {score.sufficiency:6.2f}")
        console.print()
