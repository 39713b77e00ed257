"""BLEU uses the tokenizer of the target language and names it in the signature."""

import pytest
import sacrebleu

from translucid.captions.caption_scores import caption_scores, papers_tokens
from translucid.evaluation import metrics
from translucid.evaluation.metrics import Criterion, bleu, bleu_metric, bleu_tokenizer, corpus_scores, long_enough
from translucid.evaluation.report import evaluate
from translucid.ground.errors import UserError

CHINESE = ["我喜欢在海边看书。", "他们明天去学校。", "这本书很有意思！", "你想喝什么茶？"]
TRANSLATIONS = ["我喜欢在海边看报。", "他们今天去学校。", "这本书很有意思！", "你想喝什么？"]
THAI = ["ฉันชอบอ่านหนังสือ", "พวกเขาไปโรงเรียน"]


@pytest.fixture
def installed(monkeypatch):
    """Return the set of installed tokenizers, empty at first."""
    names = set()
    monkeypatch.setattr(metrics, "_installed", lambda name: name in names)
    return names


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        *(("zh", "zh"), ("zh-TW", "zh"), ("zho_Hans", "zh"), ("cmn_Hant", "zh"), ("yue", "zh")),
        *(("es", "13a"), ("en-US", "13a"), ("spa_Latn", "13a"), ("ar", "13a"), ("fa", "13a"), ("hi", "13a")),
        *(("ja", "ja-mecab"), ("jpn_Jpan", "ja-mecab"), ("ko", "ko-mecab"), ("kor_Hang", "ko-mecab")),
        *(("th", "char"), ("lo", "char"), ("km", "char"), ("my", "char"), ("bo", "char")),
        *((None, "13a"), ("xx-unknown", "13a")),
    ],
)
def test_each_language_has_its_tokenizer(installed, language, expected):
    installed |= {"ja-mecab", "ko-mecab"}
    assert bleu_tokenizer(language) == expected


def test_without_the_packages_each_character_is_a_token(installed):
    assert {bleu_tokenizer(code) for code in ("ja", "ko")} == {"char"}
    score = corpus_scores(["私は本を読む。"], [["私は本を読む。"]], language="ja")[0]
    assert score.value == pytest.approx(100) and "tok:char" in score.signature


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        (CHINESE, "zh"),
        (["私は本を読むのが好きです。", "学校へ行きます。"], "ja-mecab"),
        (["저는 책 읽는 것을 좋아합니다."], "ko-mecab"),
        (THAI, "char"),
        (["I like 茶.", "They go to school."], "13a"),
        (["1 2 3"], "13a"),
        ([None, "我喜欢"], "zh"),
    ],
)
def test_where_no_language_is_known_the_references_show_it(installed, references, expected):
    installed |= {"ja-mecab", "ko-mecab"}
    assert bleu_tokenizer(None, [references]) == expected


def test_a_good_chinese_translation_has_a_high_score():
    expected = sacrebleu.corpus_bleu(TRANSLATIONS, [CHINESE], tokenize="zh").score
    assert expected > 50
    scores = {score.name: score for score in corpus_scores(TRANSLATIONS, [CHINESE], language="zh")}
    assert scores["BLEU"].value == pytest.approx(expected) == bleu(TRANSLATIONS, [CHINESE], language="zh")
    assert "tok:zh" in scores["BLEU"].signature and "asian:yes" in scores["TER"].signature
    assert 0 < scores["TER"].value < 30  # with characters as words; whole sentences as words would give 75
    assert bleu(TRANSLATIONS, [CHINESE]) == pytest.approx(
        expected
    )  # without a code, the references determine the language
    evaluation = evaluate(["a b c d"] * 4, TRANSLATIONS, [CHINESE], language="zh", lengths=True)
    assert evaluation.by_length[0].bleu == pytest.approx(expected) and not evaluation.bleu_is_blind
    assert 0.8 < evaluation.by_length[0].length_ratio < 1


def test_sources_without_spaces_have_lengths_too():
    evaluation = evaluate([*CHINESE[:2], "短"], ["I like it."] * 3, [["I like it."] * 3], lengths=True)
    assert [(row.words, row.sentences) for row in evaluation.by_length] == [("1-5", 1), ("6-10", 2)]


def test_captions_in_chinese_are_counted_by_characters():
    assert papers_tokens("一只狗。") == ["一", "只", "狗"]
    captions, references = ["一只狗在草地上", "两只猫"], [["一只狗在草地上跑"], ["三个人"]]
    scores = caption_scores(captions, references, "zh")
    spaced = caption_scores([" ".join(text) for text in captions], [[" ".join(text)] for [text] in references], "en")
    assert scores.bleu[3] > 70 and "tok:zh" in scores.sacrebleu.signature
    assert scores.cider == pytest.approx(spaced.cider) and scores.cider > 0


@pytest.mark.parametrize("name", ["ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K"])
def test_a_tokenizer_that_is_missing_is_one_line(monkeypatch, name):
    def raise_error(*_, **__):
        raise RuntimeError("\nJapanese tokenization requires\n") if "mecab" in name else SystemExit(1)

    monkeypatch.setattr("sacrebleu.metrics.bleu._get_tokenizer", raise_error)
    with pytest.raises(UserError) as caught:
        bleu_metric(name)
    message = str(caught.value)
    assert name in message and "\n" not in message and '`tokenize="char"`' in message
    assert ("pip install" in message) == ("mecab" in name) and ("network" in message) == ("mecab" not in name)


def test_bleu_is_not_used_for_texts_without_four_words():
    """BLEU is 0 there, even for a correct translation."""
    words = ["perro", "gato", "la casa", "el libro azul"]
    assert bleu(words, [words]) == 0
    criterion = Criterion([words], "es")
    assert criterion.name == "chrF" and criterion.score(words) == 100 and criterion.is_meaningful(100)
    assert criterion.score(["perro", "x", "la casa", "y"]) < 80
    long = Criterion([["me gusta el libro azul", *["sí"] * 9]], "es")
    assert long.name == "BLEU" and not long.is_meaningful(0.99) and long.is_meaningful(1.0)
    assert Criterion([["sí"] * 11 + ["me gusta el libro azul"]], "es").name == "chrF"  # one in twelve
    assert not long_enough([CHINESE], "13a") and long_enough([CHINESE], "zh")
    assert Criterion([[None, "una casa"], ["el libro es azul", None]], "es").name == "BLEU"  # any reference counts


def test_where_bleu_is_too_low_to_tell_chrf_compares():
    references = ["me gusta mucho el libro azul"] * 200
    criterion = Criterion([references], "es")
    assert criterion.name == "BLEU"
    assert criterion.choose_metric(["me gusto muchas los libros"] * 200) > 10
    assert criterion.name == "chrF"


def test_an_evaluation_says_where_bleu_tells_nothing():
    evaluation = evaluate(["a", "b"], ["perro", "gato"], [["perro", "gato"]])
    assert evaluation.bleu_is_blind
    assert any("BLEU says nothing here" in str(part) for part in evaluation.render())
