"""Terms in held-out sentences: how many are used, in the right form, and the cost in BLEU and time.

    python benchmarks/terms.py corpus RUN --train train.tsv --test test.tsv
    python benchmarks/terms.py phrasebook RUN

Terms are mined from the test pairs with a lexicon trained on the training pairs: source words that are translated by a
word of the reference. A source word with several translations gets the most frequent one, and only sentences whose
reference has all its terms are scored. The requested form is either that of the reference, or the dictionary form, of
which another form may be used.

In the phrasebook the right form is known. For one word of each sentence whose translation is not the dictionary form,
the dictionary form is requested. Then the word is replaced by an invented one, so that only the term determines its
meaning: `I see the girls` becomes `I see the blicks`, with the term blick TAB niño.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import torch

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import read_pairs, sources_of
from translucid.decoding.constrained_decoding import Constraints
from translucid.decoding.decoding_options import SearchRequest
from translucid.evaluation.metrics import bleu
from translucid.terminology.glossary import Term
from translucid.terminology.matching import Lemmas, TermList
from translucid.terminology.mining import Lexicon, content
from translucid.terminology.term_forms import TermForms

PUNCTUATION = ".,;:!?¿¡"


def glossary(pairs: list[Pair], lexicon: Lexicon) -> dict[str, str]:
    """Return the most frequent translation of each word that may be a term."""
    counts: dict[str, Counter[str]] = {}
    for pair in pairs:
        source, target = content(pair.source), content(pair.target)
        for i, j in lexicon.terms(source, target):
            counts.setdefault(source[i].text.casefold(), Counter())[target[j].text.casefold()] += 1
    return {word: min(targets, key=lambda target: (-targets[target], target)) for word, targets in counts.items()}


def fit(pairs: list[Pair], terms: TermList) -> list[Pair]:
    """Return the pairs that have terms, and whose references use all of them."""
    usable = []
    for pair in pairs:
        uses = terms.uses(terms.matches(pair.source), pair.target)
        if uses and all(use.outcome != "missing" for use in uses):
            usable.append(pair)
    return usable


def evaluate(translator: Translator, pairs: list[Pair], terms: TermList, beam: int) -> dict[str, Any]:
    """Translate; return the use of terms, the quality and the time."""
    started = time.process_time()
    texts = [translation.text for translation in translator.translate(sources_of(pairs), beam=beam)]
    seconds = time.process_time() - started
    outcomes: Counter[str] = Counter()
    agree = forms = 0
    for pair, text in zip(pairs, texts, strict=True):
        matches = terms.matches(pair.source)
        outcomes.update(use.outcome for use in terms.uses(matches, text))
        if terms.target:
            right = {word.text.casefold() for word in content(pair.target)}
            output_words = [word.text.casefold() for word in content(text)]
            for match in matches:
                inflections = [word for word in output_words if terms.target.same_word(word, match.targets[0])]
                forms += bool(inflections)
                agree += any(word in right for word in inflections)
    total = outcomes.total()
    results: dict[str, Any] = {
        "sentences": len(pairs),
        "asked": total,
        "used": round(100 * outcomes["used"] / total, 1),
        "inflected": round(100 * outcomes["inflected"] / total, 1),
        "missing": round(100 * outcomes["missing"] / total, 1),
        "bleu": round(bleu(texts, [[pair.target for pair in pairs]]), 2),
        "seconds": round(seconds, 2),
    }
    if forms:
        results["form of the reference"] = round(100 * agree / forms, 1)
    return results


def compare_searches(translator: Translator, pairs: list[Pair], terms: TermList, beam: int) -> Iterator[dict[str, Any]]:
    """Compare the ordinary search with one that gets all terms at once, with the same beam; both in our own engine."""
    engine, tokenizer = translator.torch_engine, translator.tokenizer
    options = translator.configuration.decoding.model_copy(update={"beam": beam})
    forms = TermForms(tokenizer)
    sources = [pair.source for pair in pairs]
    ids = [pieces[0].ids for pieces in translator.pipeline.pieces(sources, split=False)]
    matches = [terms.matches(source) for source in sources]
    # () for each term: it replaces no token of the model's own translation.
    required = [forms.constraints(sentence_matches, [()] * len(sentence_matches)) for sentence_matches in matches]
    seconds: dict[str, float] = {}
    for name, constraints in (("ordinary search", None), ("constrained search", Constraints(required, forms.edges))):
        started = time.process_time()
        hypotheses = engine.decode(SearchRequest(ids, options), constraints=constraints)
        seconds[name] = time.process_time() - started
        texts = [tokenizer.decode(nbest[0].tokens) for nbest in hypotheses]
        uses = [
            use
            for sentence_matches, text in zip(matches, texts, strict=True)
            for use in terms.uses(sentence_matches, text)
        ]
        missing = sum(use.outcome == "missing" for use in uses)
        yield {
            "search": name,
            "beam": beam,
            "sentences": len(pairs),
            "asked": len(uses),
            "missing": round(100 * missing / len(uses), 1),
            "bleu": round(bleu(texts, [[pair.target for pair in pairs]]), 2),
            "seconds": round(seconds[name], 2),
            "time ratio": round(seconds[name] / seconds["ordinary search"], 2),
        }


INVENTED = ("blick", "dax", "wug", "toma", "fep", "zorp", "glorf", "mib")
"""Words that do not exist."""
ENDINGS = ("ing", "ed", "s")


def inflected_words(count: int, lemmas: Lemmas) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield source, source with an invented word, word, invented word, and the right form."""
    draw = Random(1)
    phrases = generate(20 * count, split="test", min_words=3, max_words=14)
    lexicon = Lexicon.learn(Pair(phrase.source, phrase.target) for phrase in generate(5000))
    count_yielded = 0
    for phrase in phrases:
        source, target = phrase.source.split(), phrase.target.split()
        links = Counter(i for i, _ in phrase.alignment), Counter(j for _, j in phrase.alignment)
        candidates = []
        for i, j in phrase.alignment:
            word, form = source[i].strip(PUNCTUATION), target[j].strip(PUNCTUATION)
            common_words = {word.casefold(), form.casefold()} & lexicon.common
            if (
                links[0][i] == links[1][j] == 1
                and word.isalpha()
                and not common_words
                and lemmas.of(form) != form.casefold()
            ):
                candidates.append((i, word, form))
        if not candidates:
            continue
        i, word, form = draw.choice(candidates)
        ending = next((e for e in ENDINGS if word.endswith(e) and Lemmas("en").of(word) != word.casefold()), "")
        invented = draw.choice(INVENTED) + ending
        strange = [*source[:i], source[i].replace(word, invented), *source[i + 1 :]]
        yield phrase.source, " ".join(strange), word, invented, form
        count_yielded += 1
        if count_yielded == count:
            return


def phrasebook(arguments: argparse.Namespace) -> None:
    """Print how often the right form is used, for real and invented words."""
    translator = Translator.load(arguments.run, engine=arguments.engine, threads=1)
    lemmas = Lemmas("es")
    rows = list(inflected_words(arguments.sentences, lemmas))
    for kind in ("real words", "words that do not exist"):
        for mode in (None, *arguments.modes):
            outcomes: Counter[str] = Counter()
            for source, strange, word, invented, form in rows:
                text, term_source = (source, word) if kind == "real words" else (strange, invented)
                terms = TermList([Term(term_source, lemmas.of(form))], target=lemmas)
                constrained = translator.with_terms(terms, mode=mode) if mode else translator
                output = constrained.translate(text).text
                right = form.casefold() in {word_in_output.text.casefold() for word_in_output in content(output)}
                outcomes["right form"] += right
                outcomes["some form"] += terms.uses(terms.matches(text), output)[0].outcome != "missing"
            shares = {name: round(100 * number / len(rows), 1) for name, number in outcomes.items()}
            print(json.dumps({"asked for": kind, "mode": mode, "sentences": len(rows), **shares}), flush=True)


def main() -> None:
    """Print a line of JSON for each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["corpus", "phrasebook"])
    parser.add_argument("run", type=Path)
    parser.add_argument("--train", help="training pairs of the lexicon")
    parser.add_argument("--test")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--modes", nargs="*", default=["constrain"])
    parser.add_argument("--asked", nargs="*", default=["reference", "dictionary"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    (phrasebook if arguments.what == "phrasebook" else corpus)(arguments)


def corpus(arguments: argparse.Namespace) -> None:
    """Print the use of mined terms."""
    translator = Translator.load(arguments.run, engine=arguments.engine, threads=1)
    source, target = translator.configuration.data.languages
    pairs = list(read_pairs(arguments.test))
    Random(1).shuffle(pairs)
    words = glossary(pairs, Lexicon.learn(read_pairs(arguments.train)))
    lemmas = Lemmas(target)
    term_lists = {
        "reference": TermList(Term(*entry) for entry in words.items()),
        "dictionary": TermList((Term(word, lemmas.of(form)) for word, form in words.items()), Lemmas(source), lemmas),
    }
    for form in arguments.asked:
        terms = term_lists[form]
        usable = fit(pairs, terms)[: arguments.sentences]
        evaluate(translator, usable[:50], terms, arguments.beam)
        for results in compare_searches(translator, usable, terms, arguments.beam) if form == "reference" else ():
            print(json.dumps(results), flush=True)
        without = evaluate(translator, usable, terms, arguments.beam)
        print(json.dumps({"asked": form, "mode": None, **without}), flush=True)
        for mode in arguments.modes:
            constrained = translator.with_terms(terms, mode=mode)
            evaluate(constrained, usable[:50], terms, arguments.beam)
            results = evaluate(constrained, usable, terms, arguments.beam)
            ratio = round(results["seconds"] / without["seconds"], 2)
            print(json.dumps({"asked": form, "mode": mode, **results, "time ratio": ratio}), flush=True)


if __name__ == "__main__":
    main()
