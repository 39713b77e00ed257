"""Apple string catalogs as documents, checked with the json module."""

import json
from dataclasses import replace

import pytest

from bitext.documents.document import read_document
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from translucid.ground.errors import UserError


def unit(value, state="translated"):
    return {"stringUnit": {"state": state, "value": value}}


def plural(**forms):
    return {"variations": {"plural": {form: unit(value) for form, value in forms.items()}}}


def xcode_json(strings):
    """Return a catalog in the JSON style of Xcode."""
    catalog = {"sourceLanguage": "en", "strings": strings, "version": "1.0"}
    text = json.dumps(catalog, indent=2, separators=(",", " : "), ensure_ascii=False, sort_keys=True)
    return text.replace("{}", "{\n\n    }")


def read(strings, target="es"):
    content = xcode_json(strings).encode()
    document = read_document("Localizable.xcstrings", content, ("en", target))
    assert document.filled({}) == content
    return document


def strings_after(document, **changes):
    targets = {number: replace(target, **changes) for number, target in all_changed(document).items()}
    return json.loads(document.filled(targets))["strings"]


def test_a_translation_is_added_in_the_style_of_xcode():
    strings = {
        "A cat": {},
        "key": {"comment": "a pet", "localizations": {"de": unit("Hund"), "en": unit("A dog"), "fr": unit("Chien")}},
    }
    document = read(strings)
    assert [(segment.place, segment.source.text, segment.note) for segment in document.segments] == [
        ("line 4", "A cat", None),
        ("line 7", "A dog", "a pet"),
    ]
    strings["A cat"]["localizations"] = {"es": unit("A CAT", "needs_review")}
    strings["key"]["localizations"]["es"] = unit("A DOG", "needs_review")
    assert document.filled(all_changed(document)).decode() == xcode_json(strings)


def test_only_translations_change_in_any_other_style():
    content = b'{"sourceLanguage":"en", "strings":{"A \\u0063at" : {"z":1},\t"B":{"localizations":{"fr":{}}}}}'
    document = read_document("a.xcstrings", content, ENGLISH_SPANISH)
    after = document.filled(all_changed(document))
    assert json.loads(after)["strings"]["A cat"]["localizations"] == {"es": unit("A CAT", "needs_review")}
    assert (
        after.replace(b'"localizations":{"es":{"stringUnit":{"state":"needs_review","value":"A CAT"}}},', b"").replace(
            b'"es":{"stringUnit":{"state":"needs_review","value":"B"}},', b""
        )
        == content
    )


def test_plurals_get_the_forms_of_the_target_language():
    source = {"n": {"localizations": {"en": plural(one="%lld cat", other="%lld cats", zero="no cats")}}}
    for target, forms in (("ru", ["zero", "one", "few", "many", "other"]), ("ja", ["zero", "other"])):
        after = strings_after(read(source, target))["n"]["localizations"][target]["variations"]["plural"]
        assert list(after) == sorted(forms)
        assert after["other"]["stringUnit"]["value"] == "%lld CATS"
    substitution = {"argNum": 1, "formatSpecifier": "lld", **plural(one="%arg cat", other="%arg cats")}
    source["n"]["localizations"]["en"] = {**unit("%#@cats@ here"), "substitutions": {"cats": substitution}}
    after = strings_after(read(source, "de"))["n"]["localizations"]["de"]
    assert after["stringUnit"]["value"] == "%#@cats@ HERE" and after["substitutions"]["cats"]["argNum"] == 1
    assert after["substitutions"]["cats"]["variations"]["plural"]["one"]["stringUnit"]["value"] == "%ARG CAT"


def test_variations_by_device_and_existing_translations():
    device = {"variations": {"device": {"mac": unit("Click"), "other": unit("Tap")}}}
    existing = {"variations": {"device": {"mac": unit("Clic"), "other": unit("Tap", "new")}}}
    document = read({"a": {"localizations": {"en": device, "es": existing}}})
    assert [segment.existing and segment.existing.text for segment in document.segments] == ["Clic", None]
    after = json.loads(document.filled({1: all_changed(document)[1]}))["strings"]["a"]["localizations"]["es"]
    assert after["variations"]["device"] == {"mac": unit("Clic"), "other": unit("TAP", "needs_review")}
    by_person = strings_after(document, origin="person")["a"]["localizations"]["es"]
    assert by_person["variations"]["device"]["mac"] == unit("CLICK")


def test_the_code_of_the_language_is_that_of_the_file():
    strings = {"A cat": {}, "A dog": {"localizations": {"pt-BR": unit("Um cão")}}}
    document = read(strings, "pt")
    assert [segment.existing and segment.existing.text for segment in document.segments] == [None, "Um cão"]
    assert "pt-BR" in strings_after(document)["A cat"]["localizations"]


@pytest.mark.parametrize("entry", [{"shouldTranslate": False}, {"extractionState": "stale"}, 1])
def test_untranslated_entries_are_unchanged(entry):
    assert not read({"A cat": entry, "%@": {}, "": {}}).segments


@pytest.mark.parametrize(
    ("content", "languages", "message"),
    [
        ("{", ENGLISH_SPANISH, "is not JSON"),
        ("[]", ENGLISH_SPANISH, "has no sourceLanguage or no strings"),
        ('{"sourceLanguage": "en", "strings": 1}', ENGLISH_SPANISH, "has no sourceLanguage or no strings"),
        (xcode_json({}), ("de", "es"), "is from en, the translator from de"),
        (xcode_json({}), ("en", None), "holds all languages. Name the target language"),
        ("[" * 100_000, ENGLISH_SPANISH, "is nested too deep"),
    ],
)
def test_other_files_are_refused(content, languages, message):
    with pytest.raises(UserError, match=message):
        read_document("a.xcstrings", content.encode(), languages)
