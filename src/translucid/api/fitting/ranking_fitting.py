"""The weights of a ranking by a run of the other direction, chosen on sentence pairs or set, and saved in the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from translucid.api.translator import Translator
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.choosing import EngineName
from translucid.engines.noisy_channel import (
    LENGTH,
    REVERSE,
    WEIGHTS,
    NoisyChannel,
    TunedWeights,
    reverse_configuration,
    tune_weights,
)
from translucid.engines.run_files import save_channel_weights
from translucid.ground.console import Console
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import pairs_of
from translucid.runs.run_folder import RunFolder
from translucid.runs.settings import without_none


def fit_ranking(
    run: Path,
    reverse: Path,
    configuration: Configuration,
    *,
    console: Console,
    options: DecodingOptions,
    pairs: Sequence[str] = (),
    reverse_weight: float | None = None,
    length_weight: float | None = None,
    others: Sequence[Path] = (),
    device: str = "auto",
    engine: EngineName = "auto",
) -> TunedWeights:
    """Choose the weights of the ranking of a run's hypotheses by a run of the other direction, and save them.

    Args:
        run: the run folder.
        reverse: the folder of the run of the other direction.
        configuration: the configuration of the run, for the languages of the pairs.
        console: shows the progress.
        options: the options of the search.
        pairs: files of pairs on which they are chosen by BLEU; without any, a weight that is not set has its default.
        reverse_weight: the weight of log p(x | y), if it is set.
        length_weight: the weight of each token, if it is set.
        others: further runs whose probabilities are averaged with those of the run.
        device: auto, cpu, cuda, cuda:1 or mps.
        engine: the engine that searches.

    Raises:
        UserError: a run or a file is damaged, the reverse run translates in the same direction, or the translations are
            too bad to distinguish weights.
    """
    folder = RunFolder(run)
    if pairs:
        translator = Translator.open(folder, configuration, device, engine, others=others)
        channel = NoisyChannel.load(reverse, configuration, translator.pipeline, device)
        tuned = tune_weights(
            translator.stages,
            channel,
            list(pairs_of(configuration.data, *pairs)),
            options,
            configuration.data.languages[1],
            console,
            reverse=REVERSE if reverse_weight is None else (reverse_weight,),
            length=LENGTH if length_weight is None else (length_weight,),
        )
    else:
        reverse_configuration(reverse, configuration)  # raises an error for a run of the same direction
        weights = without_none({"reverse": reverse_weight, "length": length_weight})
        tuned = TunedWeights(WEIGHTS._replace(**weights))
    languages = configuration.data.chosen_languages
    save_channel_weights(folder, folder.tokenizer(), languages, RunFolder(reverse), tuned.weights)
    return tuned
