"""Rules that label targets as formal or informal, and the control tokens that pairs get."""

import json
import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from bitext.memory.translation_memory import Recall, TranslationMemory
from bitext.pair import Pair
from tests.growth import assert_linear
from translucid.data.document_context import ContextOptions
from translucid.data.formality import Labels, address_loss, address_of, languages_with_rules, may_be
from translucid.data.linked_pairs import LinkedPair
from translucid.data.placeholders import masked_pairs
from translucid.data.readers.corpus import SyntheticPair, read_pairs
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.special import FORMALITY, SPECIAL

DOCS = Path(__file__).parents[2] / "docs"
PAGES = DOCS / "formality.md", DOCS / "reports" / "formality.md"
CODES = {"Spanish": "es", "German": "de", "French": "fr"}
TEXTS = ["Where do you live? It rains. Call me.", "¿Dónde vives? Llueve. Llámeme. Usted vive aquí."]


def examples():
    """Yield the sentences of the tables on the pages, with their languages, labels and sources."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    for heading, rows in re.findall(r"^\| (.*) \| label \|\n\|[ -|]+\n((?:\|.*\n)+)", text, re.M):
        for row in rows.splitlines():
            *cells, label = (cell.strip() for cell in row.strip("|").split("|"))
            language, sentence, source = cells if len(cells) > 1 else (heading, *cells, "")
            yield CODES[language], sentence, label, source


@pytest.fixture(scope="module")
def tokenizer():
    options = TokenizerOptions(vocabulary=60, languages={"es": "<2es>", "fr": "<2fr>"})
    pairs = [Pair(*TEXTS)] * 3
    return Tokenizer.learn(pairs, options, seed=1, tagged=True, reserved=[*FORMALITY.values()])


def test_a_translation_that_addresses_nobody_is_worse_than_one_of_the_form_and_better_than_one_of_the_other():
    texts = ["Limpie la casa.", "¿Cuál es su casa?", "La casa está limpia.", "Limpia la casa."]
    losses = [address_loss("formal", ("en", "es"), "Clean the house.", text) for text in texts]
    assert losses == [0, 0, 1, 2]


def test_every_sentence_of_the_pages_has_its_label():
    counts = Counter((language, label, bool(source)) for language, _, label, source in examples())
    assert len(counts) > 18 and counts.total() > 65  # all labels in all languages
    for code, text, label, source in examples():
        assert address_of(text, code, source, "en") == label, text


def test_a_row_of_opening_signs_is_read_in_linear_time():
    """Every sign may be a start, with all signs after it; longer texts are cut."""
    assert address_of("«¿" * 500, "es", "«" * 1000, "en") == "none"
    assert_linear(lambda count: lambda: address_of("«¿" * count, "es", "«" * 2 * count, "en"), 60, 500)


def test_languages_have_rules_by_any_of_their_codes():
    assert languages_with_rules() == ["de", "es", "fr"]
    assert address_of("¿Dónde vives?", "spa_Latn") == address_of("¿Dónde vives?", "es-MX") == "informal"
    assert {address_of("¿Dónde vives?", code) for code in ("it", None)} == {"unclear"}


def test_a_share_of_the_pairs_gets_tokens():
    """Pairs that address nobody on both sides get some at random, all others only that of their label."""
    targets = {"Usted vive aquí.": "formal", "Vives aquí.": "informal", "Su casa arde.": None, "Llueve.": "random"}
    pairs = [Pair(f"Sentence {i}.", target) for target in targets for i in range(1000)]
    marked = list(Labels(0.6, 1, ("en", "es")).with_tokens(pairs))
    assert marked == pairs and all(pair.control is None for pair in pairs)
    for target, label in targets.items():
        counts = Counter(pair.control for pair in marked if pair.target == target)
        if label == "random":
            assert counts["<formal>"] == pytest.approx(60, abs=25) == counts["<informal>"]
        else:
            token = FORMALITY.get(label)
            assert set(counts) <= {None, token}
            assert token is None or counts[token] == pytest.approx(600, abs=50)
    assert Labels(1, 1, ("en", "es")).address(Pair("Drink water.", "Bebe agua.")) == "informal"  # by the source
    backwards = list(Labels(0.6, 1, ("en", "es")).with_tokens(reversed(pairs)))
    assert [pair.control for pair in reversed(backwards)] == [pair.control for pair in marked]
    assert address_of("Come in. The water is nice.", "en") == "unclear" != address_of("The water is nice.", "en")
    with_you = [Pair(f"Do you see {i}?", "Llueve.") for i in range(100)]  # a form that the rules do not know
    assert not any(pair.control for pair in Labels(0.99, 1, ("en", "es")).with_tokens(with_you))
    assert not any(pair.control for pair in Labels(0.99, 1, ("en", "es")).with_tokens([Pair("", "Vives aquí.")] * 9))


def test_the_label_of_a_corpus_comes_before_the_rules_and_survives_changes_of_the_text(tmp_path):
    file = tmp_path / "pairs.jsonl"
    rows = [{"source": "Write %s.", "target": "Scriva %s.", "formality": "formal"}, {"source": "a", "target": "Vives."}]
    file.write_text("".join(map("{}\n".format, map(json.dumps, rows))), encoding="utf-8")
    labeled, plain = read_pairs(file)
    labels = Labels(0.9, 1, ("en", "es"))
    assert [labels.address(pair) for pair in (labeled, plain)] == ["formal", "informal"]
    (masked,) = masked_pairs([labeled], 0, 1)
    for pair in (masked, LinkedPair.of(labeled, []), SyntheticPair.of(labeled)):
        assert labels.address(pair) == "formal"
    assert labels.address(labeled.swapped) != "formal"  # the label is that of the target
    file.write_text(json.dumps({**rows[0], "formality": "polite"}), encoding="utf-8")
    with pytest.raises(UserError, match="formality must be formal or informal"):
        list(read_pairs(file))


def test_the_token_is_after_that_of_the_language_in_training_and_translation(tokenizer):
    spanish = tokenizer.between(None, "es", TokenizerOptions(languages={"es": "<2es>", "fr": "<2fr>"}))
    pair = SyntheticPair("It rains.", "Llueve.")
    pair.control = FORMALITY["formal"]
    corpus = EncodedCorpus.encode([pair], spanish, max_tokens=99)
    ids = corpus.source(0).tolist()
    assert tokenizer.source_pieces(ids[:3]) == ["<bt>", "<2es>", "<formal>"]
    formal = spanish.with_formality("formal")
    assert formal.encode_source(["It rains."])[0] == ids[1:-1]
    assert formal.with_formality("informal").source_opening[-1] == tokenizer.source_id("<informal>")
    assert formal.with_formality(None).source_opening == spanish.source_opening
    assert tokenizer.encode_source(["<formal>"])[0][0] != tokenizer.source_id("<formal>")  # no text yields it
    plain = VariedCorpus([Pair("Call me.", "Llámeme."), pair], tokenizer, 1e-9, 1).draw([1])
    assert plain.source(0)[:-1].tolist() == tokenizer.encode_source(["Call me."])[0]
    assert plain.source(1)[:-1].tolist() == [ids[0], *ids[2:-1]]


def test_long_texts_and_sentences_before_also_have_it(tokenizer):
    formal = tokenizer.with_formality("formal")
    (pieces,) = TextPipeline(formal, 12, "en").pieces(["Where do you live where do you live?"], split=True)
    assert len(pieces) > 1
    for piece in pieces:
        assert piece.ids[0] == tokenizer.source_id("<formal>") and len(piece.ids) <= 12
        assert piece.ids[-1] == SPECIAL.end
    context = ContextOptions(separator=SPECIAL.unknown, max_sentences=2, max_tokens=90)
    (pieces,) = TextPipeline(formal, 90, "en", context=context).pieces(["It rains. Call me."], split=True)
    assert [ids[0] for ids in pieces[1].before] == [tokenizer.source_id("<formal>")]


def test_a_match_with_the_other_form_of_address_is_not_used(tmp_path):
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as memory:
        pairs = (
            Pair("Where do you live?", "¿Dónde vives?"),
            Pair("It rains.", "Llueve."),
            Pair("Drink water.", "Bebe agua."),
        )
        memory.add(pairs, "")
        informal = [pair.target for pair in pairs]
        for formality, used in (("formal", [None, "Llueve.", None]), ("informal", informal)):
            recall = Recall(memory, 100, partial(may_be, formality, ("en", "es")))
            matches = map(recall.replacement, (pair.source for pair in pairs))
            assert [match and match.target for match in matches] == used
        memory.add([Pair("Where do you live?", "¿Dónde vive usted?")], "")
        recall = Recall(memory, 100, partial(may_be, "informal", ("en", "es")))
        assert getattr(recall.replacement("Where do you live?"), "target", None) != "¿Dónde vive usted?"
