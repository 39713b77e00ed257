"""Every token repeated in every position of every kind of document: reading time must grow no faster than the size."""

import gc

from tests.documents.growth_inputs import ELEMENTS, PLACES, TOKENS
from tests.documents.test_growth import growth, repeated, seconds_of_document
from tests.probes.common import Finding


def repeated_tokens() -> Finding:
    """Compare the reading times of texts, each eight times as long as the previous one."""
    finding = Finding("tokens repeated in every position of a document: time against 8 times the size")
    cases = [(name, PLACES[name], token) for name in PLACES for token in TOKENS]
    for name, (document, elements) in ELEMENTS.items():
        cases += [(f"a{name[name.index('.') :]}", document, element) for element in elements]
    gc.disable()
    for name, document, _ in cases[:: len(TOKENS)]:
        seconds_of_document(name, document("a b"))  # one-time loading
    for name, document, token in cases:

        def seconds(characters: int, name=name, document=document, token=token) -> float:  # type: ignore[no-untyped-def]
            return seconds_of_document(name, document(repeated(token, characters)))

        if times := growth(seconds):
            finding.fail(f"{token!r} in {name}: {times} s")
    gc.enable()
    finding.figures = {"places": len(PLACES) + len(ELEMENTS), "tokens": len(TOKENS), "tried": len(cases)}
    return finding
