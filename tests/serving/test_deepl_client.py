"""DeepL's official Python client, unchanged, against a real server."""

import io
import time
from types import SimpleNamespace

import deepl
import pytest

from translucid.api.translator import Translator

from .test_clients import address  # noqa: F401


@pytest.fixture
def client(address, monkeypatch):  # noqa: F811
    monkeypatch.setattr("deepl.http_client.max_network_retries", 0)
    clock = SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(0.05))
    monkeypatch.setattr(deepl.translator, "time", clock)  # the client polls every five seconds
    return deepl.Translator("any key", server_url=address)


def test_texts(client, run):
    expected = [translation.text for translation in Translator.load(run).translate(["I like soccer", "You sing"])]
    translation_of_text = client.translate_text("I like soccer", target_lang="ES")
    assert (
        translation_of_text.text,
        translation_of_text.detected_source_lang,
        translation_of_text.billed_characters,
    ) == (expected[0], "EN", 13)
    translations = client.translate_text(["I like soccer", "You sing"], source_lang="EN", target_lang="ES")
    assert [translation.text for translation in translations] == expected
    with_model_type = client.translate_text("You sing", target_lang="ES", model_type="prefer_quality_optimized")
    assert with_model_type.model_type_used == "quality_optimized"


def test_languages_and_usage(client):
    before = client.get_usage().character.count
    client.translate_text("I like soccer", target_lang="ES")
    usage = client.get_usage()
    assert usage.character.count == before + 13
    assert not usage.any_limit_reached
    assert [(language.code, language.name) for language in client.get_source_languages()] == [("EN", "English")]
    (target,) = client.get_target_languages()
    assert (target.code, target.name, target.supports_formality) == ("ES", "Spanish", False)


def test_what_it_refuses_the_client_understands(client):
    for fields, message in (
        ({"target_lang": "XX"}, "target_lang"),
        ({"target_lang": "ES", "source_lang": "XX"}, "source_lang"),
        ({"target_lang": "ES", "formality": "more"}, "formality"),
        ({"target_lang": "ES", "split_sentences": "maybe"}, "split_sentences"),
        ({"target_lang": "ES", "tag_handling": "pdf"}, "tag_handling"),
        ({"target_lang": "ES", "source_lang": "EN", "glossary": "some"}, "Glossary not found"),
    ):
        with pytest.raises(deepl.DeepLException, match=message):
            client.translate_text("I sing", **fields)
    assert client.translate_text("I sing", target_lang="ES", formality="prefer_more").text


def test_tags(client, run):
    def translate(text, **fields):
        return client.translate_text(text, target_lang="ES", source_lang="EN", **fields).text

    plain = {text: Translator.load(run).translate(text).text for text in ("You sing", "I sing")}
    book = "<book><t>You sing</t>\n <p>I sing</p><p k='&lt;'>You sing</p></book>"
    xml = translate(book, tag_handling="xml")
    assert (
        xml == f"<book><t>{plain['You sing']}</t>\n <p>{plain['I sing']}</p><p k='&lt;'>{plain['You sing']}</p></book>"
    )
    separate = translate(
        "<i>I sing</i><b>You sing</b>", tag_handling="xml", non_splitting_tags="i", outline_detection=False
    )
    assert separate.count("<i>") == separate.count("</b>") == 1
    assert separate != translate("<i>I sing</i><b>You sing</b>", tag_handling="xml")
    ignored = translate('I like <x id="5">soccer</x> &amp; music', tag_handling="xml", ignore_tags="x,y")
    assert ignored.count('<x id="5">soccer</x>') == 1
    split = translate("I sing <br/> You sing", tag_handling="xml", splitting_tags=["br"])
    assert split == f"{plain['I sing']} <br/> {plain['You sing']}"
    assert translate("<p>I sing<br>", tag_handling="html") == f"<p>{plain['I sing']}<br>"
    with pytest.raises(deepl.DeepLException, match="Tag handling parsing failed"):
        translate("<p>I sing<br>", tag_handling="xml")


def test_sentences_are_split_as_asked(client, run):
    def translate(text, split):
        return client.translate_text(text, target_lang="ES", source_lang="EN", split_sentences=split).text

    translator = Translator.load(run)
    first, second = (translator.translate(text).text for text in ("I sing.", "You sing."))
    assert translate("I sing.\nYou sing.", "1") == f"{first}\n{second}"
    assert translate("I sing.\nYou sing.", "nonewlines") == f"{first} {second}"
    assert translate("I sing. You sing.", "0") == translator.translate("I sing. You sing.", split=False).text


def test_documents(client, tmp_path):
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("I sing.\n\nYou sing.\n")
    status = client.translate_document_from_filepath(source, target, target_lang="ES")
    assert status.done and status.billed_characters == 16
    assert target.read_text().count("\n") == 3
    handle = client.translate_document_upload("I sing.", filename="c.txt", source_lang="EN", target_lang="ES")
    assert client.translate_document_wait_until_done(handle).done
    out = io.BytesIO()
    client.translate_document_download(handle, out)
    assert out.getvalue()
    with pytest.raises(deepl.DeepLException, match="no such file"):
        client.translate_document_get_status(deepl.DocumentHandle(handle.document_id, "0" * 64))
    with pytest.raises(deepl.DeepLException, match="no kind"):
        client.translate_document_upload("x", filename="a.exe", target_lang="ES")
    handle = client.translate_document_upload(b"\xff\xfe\xff", filename="c.txt", source_lang="EN", target_lang="ES")
    failed = client.translate_document_wait_until_done(handle)
    assert not failed.ok
    assert "c.txt" in failed.error_message


def test_glossaries(client):
    assert [(item.source_lang, item.target_lang) for item in client.get_glossary_languages()] == [("en", "es")]
    glossary_info = client.create_glossary("mine", "EN", "ES", {"soccer": "balompié", "music": "música"})
    assert (glossary_info.name, glossary_info.source_lang, glossary_info.target_lang, glossary_info.entry_count) == (
        "mine",
        "EN",
        "ES",
        2,
    )
    stored = client.get_glossary(glossary_info.glossary_id)
    assert (stored.glossary_id, stored.name, stored.entry_count) == (glossary_info.glossary_id, "mine", 2)
    assert client.get_glossary_entries(glossary_info) == {"soccer": "balompié", "music": "música"}
    assert glossary_info.glossary_id in [item.glossary_id for item in client.list_glossaries()]
    text = client.translate_text("I like soccer", source_lang="EN", target_lang="ES", glossary=glossary_info).text
    assert "balompié" in text
    assert "balompié" not in client.translate_text("I like soccer", target_lang="ES").text
    fields = {"filename": "a.txt", "source_lang": "EN", "target_lang": "ES", "glossary": glossary_info}
    handle = client.translate_document_upload("I like soccer", **fields)
    client.translate_document_wait_until_done(handle)
    out = io.BytesIO()
    client.translate_document_download(handle, out)
    assert "balompié" in out.getvalue().decode()
    from_csv = client.create_glossary_from_csv("other", "EN", "ES", 'dog,perro\n"a, b",c\n')
    assert client.get_glossary_entries(from_csv) == {"dog": "perro", "a, b": "c"}
    for glossary in (glossary_info, from_csv):
        client.delete_glossary(glossary)
        with pytest.raises(deepl.GlossaryNotFoundException):
            client.get_glossary(glossary.glossary_id)
