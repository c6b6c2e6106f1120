"""Clients that other people wrote, as they come from PyPI, pointed at a server."""

import urllib.error

import pytest


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
    url = str(serve(upper, languages=("de", "en"), keys=["secret"]).base_url)
    api = deepl.DeepLClient("secret", server_url=url)
    rows = api.translate_text(["ein", "zwei é"], target_lang="EN-US")
    assert [row.text for row in rows] == ["EIN", "ZWEI É"]
    assert {row.detected_source_lang for row in rows} == {"DE"}
    assert api.translate_text("ein", source_lang="DE", target_lang="EN-GB").text == "EIN"
    assert [language.code for language in api.get_source_languages()] == ["DE"]
    assert [language.name for language in api.get_target_languages()] == ["English"]
    assert api.get_usage().character.count == 12
    assert not api.get_usage().any_limit_reached
    assert api.get_glossary_languages() == []
    with pytest.raises(deepl.DeepLException, match="'target_lang' not supported"):
        api.translate_text("ein", target_lang="FR")
    with pytest.raises(deepl.AuthorizationException, match="missing or wrong"):
        deepl.DeepLClient("wrong", server_url=url).translate_text("ein", target_lang="EN-GB")


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
