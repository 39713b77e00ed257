"""The record of language models and text classifiers in the table of the core, `models/kinds.py`."""

from translucid.models.kinds import Task

LANGUAGE_MODELING = Task(
    reads="running text",
    does="is a language model",
    command="generate",
    kinds={
        "language-lstm": "translucid.language.options:LSTMLanguageOptions",
        "language-transformer": "translucid.language.options:TransformerLanguageOptions",
        "language-bilstm": "translucid.language.options:BiLSTMLanguageOptions",
    },
    dataset="translucid.language.running_text:RunningTextDataset",
    reads_pairs=False,
    loss="translucid.language.stream_loss:StreamLoss",
    presets="translucid.language.presets:LANGUAGE_MODELS",
    problems="translucid.language.options:problems",
)
CLASSIFICATION = Task(
    reads="texts with labels",
    does="classifies texts",
    command="classify",
    kinds={"classifier": "translucid.language.options:ClassifierOptions"},
    dataset="translucid.language.labels:LabeledDataset",
    reads_pairs=False,
    loss="translucid.language.labels:LabelLoss",
    presets="translucid.language.presets:CLASSIFIERS",
    problems="translucid.language.options:problems",
)
