"""The record of language models and text classifiers in the table of the core, `models/kinds.py`."""

from translucid.models.kinds import Served, Task

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
    loss="translucid.language.running_text:StreamLoss",
    presets="translucid.language.presets:LANGUAGE_MODELS",
    problems="translucid.language.options:problems",
    commands={
        "generate": ("Translate", "translucid.language.commands:generate"),
        "embed": ("Inspect", "translucid.language.commands:embed"),
    },
    views={"evaluate": "translucid.language.views:evaluate_texts"},
    served=Served(
        model="translucid.language.generator:Generator",
        reads="prompts",
        shows="prompts",
        does="continues texts",
        routes={
            "POST /generate": (
                "translucid.language.routes:TextModelRoutes.generate",
                "translucid.language.fields:GenerateFields",
            )
        },
    ),
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
    commands={"classify": ("Translate", "translucid.language.commands:classify")},
    views={
        "evaluate": "translucid.language.views:evaluate_labels",
        "look": "translucid.language.views:look_at_text",
        "explain": "translucid.language.views:explain_label",
    },
    served=Served(
        model="translucid.language.text_classifier:TextClassifier",
        reads="texts",
        shows="labels",
        does="classifies texts",
        routes={
            "POST /classify": (
                "translucid.language.routes:TextModelRoutes.classify",
                "translucid.language.fields:ClassifyFields",
            )
        },
    ),
)
