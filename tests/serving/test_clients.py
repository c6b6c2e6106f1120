"""Clients that other people wrote, as they come from PyPI, pointed at a server."""

import urllib.error

import pytest

from tf_transformer.run.directions import Direction


def test_libretranslatepy(client, serve, upper):
    libretranslatepy = pytest.importorskip("libretranslatepy")
    api = libretranslatepy.LibreTranslateAPI(str(client.base_url))
    assert api.translate("Ein Fluß & mehr: é\nzwei", "en", "de") == "EIN FLUSS & MEHR: É\nZWEI"
    assert [row["code"] for row in api.languages()] == ["en", "de"]
    with pytest.raises(urllib.error.HTTPError, match="501"):
        api.detect("one")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        api.translate("one", "en", "fr")
    locked = str(serve(upper, keys=["secret"]).base_url)
    with pytest.raises(urllib.error.HTTPError, match="403"):
        libretranslatepy.LibreTranslateAPI(locked).translate("one", "en", "de")
    api = libretranslatepy.LibreTranslateAPI(locked, api_key="secret")
    assert api.translate("one", "en", "de") == "ONE"


def test_deepl(serve, upper):
    deepl = pytest.importorskip("deepl")
    url = str(serve(upper, Direction("de", "en"), keys=["secret"]).base_url)
    api = deepl.DeepLClient("secret", server_url=url)
    rows = api.translate_text(["ein", "zwei é"], target_lang="EN-US")
    assert [row.text for row in rows] == ["EIN", "ZWEI É"]
    assert {row.detected_source_lang for row in rows} == {"DE"}
    assert api.translate_text("ein", source_lang="DE", target_lang="EN-GB").text == "EIN"
    assert [language.code for language in api.get_source_languages()] == ["DE"]
    assert [language.name for language in api.get_target_languages()] == ["English"]
    assert api.get_usage().character.count == 12
    assert not api.get_usage().any_limit_reached
    with pytest.raises(deepl.DeepLException, match="not supported as target_lang"):
        api.translate_text("ein", target_lang="FR")
    with pytest.raises(deepl.AuthorizationException, match="missing or wrong"):
        deepl.DeepLClient("wrong", server_url=url).translate_text("ein", target_lang="EN-GB")


def test_glossaries_of_deepl(client, upper):
    """By the client's methods of version 2 and of version 3."""
    deepl = pytest.importorskip("deepl")
    api = deepl.DeepLClient("any", server_url=str(client.base_url))
    assert [(x.source_lang, x.target_lang) for x in api.get_glossary_languages()] == [("en", "de")]
    words = {"car park": "Parkplatz", "cat": "Katze"}
    glossary = api.create_glossary("of words", "EN", "DE", words)
    assert (glossary.name, glossary.ready, glossary.entry_count) == ("of words", True, 2)
    assert api.get_glossary(glossary.glossary_id).creation_time == glossary.creation_time
    assert api.get_glossary_entries(glossary) == words
    api.translate_text("a cat", source_lang="EN", target_lang="DE", glossary=glossary)
    assert upper.options == (("terms", "cat\tKatze"),)
    dictionary = deepl.api_data.MultilingualGlossaryDictionaryEntries("en", "de", {"dog": "Hund"})
    other = api.create_multilingual_glossary("of a dog", [dictionary])
    assert [row.name for row in api.list_multilingual_glossaries()] == ["of words", "of a dog"]
    assert api.get_multilingual_glossary(other.glossary_id).dictionaries[0].entry_count == 1
    answer = api.get_multilingual_glossary_entries(other, "EN", "DE")
    assert answer.dictionaries[0].entries == "dog\tHund"  # as DeepL answers, too
    api.translate_text("a dog", source_lang="EN", target_lang="DE", glossary=other)
    assert upper.options == (("terms", "dog\tHund"),)
    api.delete_multilingual_glossary(other)
    api.delete_glossary(glossary)
    assert api.list_glossaries() == []
    with pytest.raises(deepl.GlossaryNotFoundException, match="no glossary"):
        api.get_glossary(other.glossary_id)


def test_openai(serve, upper):
    openai = pytest.importorskip("openai")
    url = f"{serve(upper, keys=['secret']).base_url}/v1"
    api = openai.OpenAI(base_url=url, api_key="secret", max_retries=0)
    (model,) = api.models.list()
    messages = [{"role": "user", "content": "one\ntwo"}]
    answer = api.chat.completions.create(model=model.id, messages=messages)
    assert answer.choices[0].message.content == "ONE\nTWO"
    stream = api.chat.completions.create(model=model.id, messages=messages, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "ONE\nTWO"
    with pytest.raises(openai.BadRequestError, match="one choice"):
        api.chat.completions.create(model="gpt", messages=messages, n=2)
    with pytest.raises(openai.AuthenticationError, match="missing or wrong"):
        openai.OpenAI(base_url=url, api_key="wrong", max_retries=0).models.list()
