"""Documents whose sentences can't be translated without those before them, and settings with which that is learned."""

from bitext.pair import Pair
from translucid.runs.corpus_files import Corpora

COLORS = {"red": "rojo", "blue": "azul", "green": "verde"}
CONTEXT = ["data.context=1", "data.tokenizer.vocabulary=50"]
LEARNING = [
    *("data.subword_dropout=0", "model.width=32", "model.feed_forward=64", "model.dropout=0", "training.warmup=20"),
    *("training.batch_tokens=300", "training.accumulate=1", "training.max_steps=150", "training.validate_every=150"),
    *("training.learning_rate=0.005", "training.averaging=0", "training.label_smoothing=0"),
    *("decoding.max_length_ratio=1", "data.source_language=en", "data.target_language=es"),
]


def documents(count):
    """Return documents of four sentences, of which the second and fourth can't be translated without those before."""
    colors = list(COLORS.items())
    pairs = []
    for number in range(count):
        for source, target in (colors[number % 3], colors[number // 3 % 3]):
            pairs.append(Pair(f"a {source} one", f"uno {target}").of_document(number))
            pairs.append(Pair("it is so", f"es {target}").of_document(number))
    return pairs


def corpora():
    """Return documents to learn from and to validate with."""
    return Corpora.of(documents(18), documents(9))
