"""Requests as the documentation of each service writes them: answers, limits, errors, keys."""

import json
import re
import threading

import pytest

from tf_transformer.run.directions import Direction
from tf_transformer.serving.requests import Limits

EN_DE = {"source": "en", "target": "de"}


def translate(client, **given):
    """LibreTranslate's answer."""
    return client.post("/translate", json={**EN_DE, **given})


def deepl(client, **given):
    given = {"text": ["one"], "target_lang": "DE", **given}
    return client.post("/v2/translate", json=given)


def chat(client, *contents, **given):
    messages = [{"role": "system", "content": "Translate into German."}]
    messages += [{"role": "user", "content": content} for content in contents]
    return client.post("/v1/chat/completions", json={"messages": messages, **given})


# --- LibreTranslate ----------------------------------------------------------------------------


def test_a_text_a_list_and_a_form_are_translated(client):
    assert translate(client, q="one").json() == {"translatedText": "ONE"}
    assert translate(client, q=["one", ""]).json() == {"translatedText": ["ONE", ""]}
    assert client.post("/translate", data={"q": "é & 漢", **EN_DE}).json() == {
        "translatedText": "É & 漢"
    }
    assert client.post("/translate", params={"q": "one", **EN_DE}).json() == {
        "translatedText": "ONE"
    }


def test_the_source_auto_is_that_of_the_model_without_confidence(client):
    answer = translate(client, q=["one", "two"], source="auto").json()
    assert answer["detectedLanguage"] == [{"confidence": 0.0, "language": "en"}] * 2
    assert translate(client, q="one", source="auto").json() == {
        "translatedText": "ONE",
        "detectedLanguage": {"confidence": 0.0, "language": "en"},
    }


def test_alternatives_are_further_predictions(client):
    assert translate(client, q="one", alternatives=3).json()["alternatives"] == ["ENO"]
    form = {"q": "aa", "alternatives": "1", **EN_DE}
    assert client.post("/translate", data=form).json()["alternatives"] == []  # equal to the best
    assert translate(client, q=["ab\ncd"], alternatives=1).json()["alternatives"] == [["BA\nDC"]]


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        ({}, 400, "Expected a list of texts as q, got [null]."),
        ({"q": [1]}, 400, "Expected a list of texts as q, got [1]."),
        ({"q": []}, 400, "Expected 1 to 128 q in a request, got 0."),
        ({"q": "a" * 2001}, 413, "Text 1 of q has 2,001 characters; at most 2,000 are allowed."),
        ({"q": "a", "source": ""}, 400, "Invalid request: missing source parameter"),
        ({"q": "a", "target": "fr"}, 400, '"fr" is not supported as target; this model has de.'),
        (
            {"q": "a", "target": "auto"},
            400,
            '"auto" is not supported as target; this',
        ),
        ({"q": "a", "source": ["en"]}, 400, '["en"] is not supported as source; this model has'),
        ({"q": "a", "format": "pdf"}, 400, 'The format "pdf" is not supported.'),
        ({"q": "a", "alternatives": "x"}, 400, 'Expected a whole number as alternatives, got "x".'),
        ({"q": "unreachable"}, 502, "no answer from the model."),
        ({"q": "defect"}, 500, "The model failed; see the server's log."),
    ],
)
def test_libretranslates_errors_are_one_sentence(client, given, status, message):
    answer = translate(client, **given)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(message)
    assert (answer.headers.get("connection") == "close") == (status == 500)
    assert translate(client, q="fine").json() == {"translatedText": "FINE"}


def test_lone_surrogates_are_no_crash(client, serve, upper):
    """JSON can have them, and UTF-8 cannot."""
    headers = {"content-type": "application/json"}
    body = r'{"q": "\ud800", "source": "en", "target": "TARGET", "api_key": "\ud800"}'
    answer = client.post("/translate", content=body.replace("TARGET", "de"), headers=headers)
    assert answer.json() == {"translatedText": "\ufffd"}
    answer = client.post("/translate", content=body.replace("TARGET", r"\ud800"), headers=headers)
    assert answer.status_code == 400
    locked = serve(upper, keys=["secret"])
    assert locked.post("/translate", content=body, headers=headers).status_code == 403


def test_the_languages_have_names_and_targets(client, serve, upper):
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    assert client.get("/frontend/settings").json()["language"]["source"]["name"] == "English"
    unknown = serve(upper, Direction("xx-Yyyy", "xx-Yyyy"))
    assert unknown.get("/languages").json() == [
        {"code": "xx-Yyyy", "name": "xx-Yyyy", "targets": ["xx-Yyyy"]}
    ]


def test_there_is_no_detector(client):
    answer = client.post("/detect", json={"q": "one"})
    assert answer.status_code == 501
    assert answer.json() == {"error": "This server has no language detector."}


# --- DeepL -------------------------------------------------------------------------------------


def test_deepl_translates_lists_and_forms(client):
    expected = [{"detected_source_language": "EN", "text": text} for text in ("ONE", "TWO")]
    answer = deepl(client, text=["one", "two"], source_lang="EN", formality="prefer_more")
    assert answer.json() == {"translations": expected}
    form = {"text": ["one", "two"], "target_lang": "de", "auth_key": "x"}
    assert client.post("/v2/translate", data=form).json() == {"translations": expected}
    form = {"text": "one", "target_lang": "DE", "show_billed_characters": "1"}
    (row,) = client.post("/v2/translate", data=form).json()["translations"]
    assert row == expected[0] | {"billed_characters": 3}


def test_a_language_may_have_a_region(serve, upper):
    client = serve(upper, Direction("de", "en"))
    assert deepl(client, target_lang="EN-GB").status_code == 200
    assert translate(client, q="a", source="de_DE", target="en-US").status_code == 200
    assert deepl(client, target_lang="EN-LATN").status_code == 400


@pytest.mark.parametrize(
    ("given", "status", "message"),
    [
        ({"target_lang": "FR"}, 400, '"FR" is not supported as target_lang; this model has de.'),
        ({"target_lang": None}, 400, '"" is not supported as target_lang; this model has de.'),
        ({"source_lang": "IT"}, 400, '"IT" is not supported as source_lang; this model has en.'),
        ({"glossary_ids": ["x"]}, 400, "This server does not support glossary_ids."),
        ({"glossary_id": "x"}, 404, 'There is no glossary "x".'),
        ({"glossary_id": ["x"]}, 404, 'There is no glossary ["x"].'),
        ({"formality": "more"}, 400, 'The formality "more" is not supported.'),
        ({"text": [None]}, 400, "Expected a list of texts as text, got [null]."),
        ({"text": ["a", "b" * 2001]}, 413, "Text 2 of text has 2,001 characters; at most 2,000"),
        ({"text": ["unreachable"]}, 502, "no answer from the model."),
        ({"text": ["defect"]}, 500, "The model failed; see the server's log."),
    ],
)
def test_deepls_errors_are_messages(client, given, status, message):
    answer = deepl(client, **given)
    assert answer.status_code == status
    assert answer.json()["message"].startswith(message)


def test_deepl_lists_languages_and_usage(client):
    deepl(client, text=["one", "two"])
    assert client.get("/v2/languages").json() == [{"language": "EN", "name": "English"}]
    target = client.get("/v2/languages", params={"type": "target"}).json()
    assert target == [{"language": "DE", "name": "German", "supports_formality": False}]
    assert client.get("/v2/languages", params={"type": "x"}).status_code == 400
    assert client.get("/v2/usage").json() == {"character_count": 6, "character_limit": 10**12}


PAIR = {"source_lang": "EN", "target_lang": "DE"}


def make_glossary(client, entries, entries_format="tsv", **given):
    content = {"name": "n", **PAIR, "entries": entries, "entries_format": entries_format, **given}
    return client.post("/v2/glossaries", json=content)


def test_a_glossary_gives_the_terms_that_may_occur_in_the_texts(client, upper):
    entries = 'car  park,Parkplatz,EN,DE\n"a, b",c\n\ncat,Katze\n'
    made = make_glossary(client, entries, "csv").json()
    assert made["entry_count"] == 3
    glossary = f"/v2/glossaries/{made['glossary_id']}"
    answer = client.get(f"{glossary}/entries")
    assert answer.text == "car park\tParkplatz\na, b\tc\ncat\tKatze"
    assert answer.headers["content-type"].startswith("text/tab-separated-values")
    deepl(client, text=["The Car park", "is far"], glossary_id=made["glossary_id"])
    assert upper.options == (("terms", "car park\tParkplatz"),)
    deepl(client, text=["two"], glossary_id=made["glossary_id"])
    assert upper.options == ()
    assert client.delete(glossary).status_code == 204
    assert client.get(glossary).json() == {"message": f'There is no glossary "{glossary[15:]}".'}
    assert client.get(f"{glossary}/entries").status_code == 404


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"entries": "a"}, 'Entry 1 must be a new phrase and its translation, got ["a"].'),
        ({"entries": "a\tb\na\tc"}, "Entry 2 must be a new phrase"),
        ({"entries": "a\t "}, "Entry 1 must be a new phrase"),
        ({"entries": "\n"}, "A glossary needs entries."),
        ({"entries": None}, "Expected a text as entries, got null."),
        ({"entries_format": "xml"}, 'Expected tsv or csv as entries_format, got "xml".'),
        ({"entries": f"{'a' * 150_000},b", "entries_format": "csv"}, "The entries are not CSV: "),
        ({"name": ""}, "A glossary needs a name."),
        ({"target_lang": "FR"}, '"FR" is not supported as target_lang; this model has de.'),
        ({"dictionaries": []}, "Expected one dictionary."),
        ({"dictionaries": ["a"]}, "Expected one dictionary."),
    ],
)
def test_what_is_no_glossary_is_an_error(client, given, message):
    answer = make_glossary(client, **({"entries": "a\tb"} | given))
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(message)


def test_glossaries_have_a_limit_and_need_a_model_with_terms(client, serve, upper, monkeypatch):
    monkeypatch.setattr("tf_transformer.serving.deepl.MOST", 1)
    assert make_glossary(client, "a\tb").status_code == 201
    assert make_glossary(client, "a\tb").status_code == 429
    upper.fields = {}
    client = serve(upper)
    assert make_glossary(client, "a\tb").json() == {
        "message": "This translator takes no glossaries."
    }
    assert client.get("/v2/glossary-language-pairs").json() == {"supported_languages": []}


# --- OpenAI ------------------------------------------------------------------------------------


def test_a_chat_is_answered_with_the_translation_of_the_last_message(client):
    answer = chat(client, "one", "two\n\n three", model="gpt", temperature=0).json()
    (choice,) = answer["choices"]
    assert choice["message"] == {"role": "assistant", "content": "TWO\n\n THREE"}
    assert choice["finish_reason"] == "stop"
    assert (answer["object"], answer["model"]) == ("chat.completion", "upper")
    (choice,) = chat(client, "a" * 51).json()["choices"]
    assert choice["finish_reason"] == "length"
    (model,) = client.get("/v1/models").json()["data"]
    assert model["id"] == "upper"


def test_the_content_of_a_message_may_be_parts_of_text(client):
    answer = chat(client, [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])
    assert answer.json()["choices"][0]["message"]["content"] == "ONE\nTWO"


def test_a_stream_has_the_translation_in_one_chunk(client):
    answer = chat(client, "one", stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *chunks, last = re.findall(r"data: (.*)\n\n", answer.text)
    assert last == "[DONE]"
    text, end = (json.loads(chunk)["choices"][0] for chunk in chunks)
    assert text["delta"] == {"role": "assistant", "content": "ONE"}
    assert (end["delta"], end["finish_reason"]) == ({}, "stop")


@pytest.mark.parametrize(
    ("given", "status", "kind", "message"),
    [
        ({"messages": None}, 400, "invalid_request_error", "Expected messages with at least one"),
        ({"messages": []}, 400, "invalid_request_error", "Expected messages with at least one"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            400,
            "invalid_request_error",
            "Expected text as the content of a message, got",
        ),
        ({"n": 2}, 400, "invalid_request_error", "This server gives one choice; got 2 as n."),
        (
            {"messages": [{"role": "user", "content": "unreachable"}]},
            502,
            "server_error",
            "no answer from the model.",
        ),
    ],
)
def test_openais_errors_have_types(client, given, status, kind, message):
    answer = chat(client, "one", **given)
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == kind
    assert answer.json()["error"]["message"].startswith(message)


# --- markup ------------------------------------------------------------------------------------

PAGE = '<p>One <a href="/x">two</a> &amp; three.</p>\n<pre>a</pre><ul><li>Caf&eacute;</ul>'
UPPER_PAGE = '<p>ONE <a href="/x">TWO</a> &amp; THREE.</p>\n<pre>a</pre><ul><li>CAFÉ</ul>'
XML = 'One <x id="1"></x>, <g>two</g> &lt;'


def test_html_keeps_its_tags(serve, upper_between_tags):
    client = serve(upper_between_tags)
    answer = translate(client, q=[PAGE, "a"], format="html", alternatives=2).json()
    assert answer == {"translatedText": [UPPER_PAGE, "A"], "alternatives": [[], []]}
    (row,) = deepl(client, text=[PAGE], tag_handling="html").json()["translations"]
    assert row["text"] == UPPER_PAGE
    assert sorted(upper_between_tags.batches[0]) == [
        *("Café", "One <a>two</a> & three.", "a"),
    ]


def test_xml_is_divided_where_the_request_says(serve, upper_between_tags):
    client = serve(upper_between_tags)

    def parts_of(**given):
        (row,) = deepl(client, text=[XML], tag_handling="xml", **given).json()["translations"]
        return row["text"], upper_between_tags.batches[-1]

    assert parts_of() == (
        'ONE <x id="1"></x>, <g>TWO</g> &lt;',
        ["One <a></a>, <b>two</b> <"],
    )
    text, parts = parts_of(ignore_tags=["x", "g"])
    assert (text, parts) == ('ONE <x id="1"></x>, <g>two</g> &lt;', ["One <a/>, <b/> <"])
    text, parts = parts_of(splitting_tags="x, g")
    assert (text, parts) == ('ONE <x id="1"></x>, <g>TWO</g> &lt;', ["One", "two"])
    assert parts_of(splitting_tags="g,x", non_splitting_tags=["x"])[1] == [
        "One <a></a>,",
        "two",
    ]
    answer = deepl(client, tag_handling="xml", ignore_tags=[1])
    assert answer.json()["message"] == "Expected a list of tags as ignore_tags, got [1]."
    assert deepl(client, tag_handling="rtf").status_code == 400


def test_a_translator_that_keeps_no_tags_refuses_markup(client, upper):
    answers = [translate(client, q="a", format="html"), deepl(client, tag_handling="xml")]
    assert [answer.status_code for answer in answers] == [400, 400]
    for text in (answers[0].json()["error"], answers[1].json()["message"]):
        assert text.startswith("This translator keeps no tags. Give --keep common to the command")
    upper.keeps_tags = True  # as of a model on another server, which is not known
    upper.best = lambda text: "EINS"
    assert translate(client, q="<b>One</b>", format="html").json() == {
        "translatedText": "<b>EINS</b>"
    }
    answer = translate(client, q="A <b>one</b>", format="html")
    assert answer.status_code == 502
    assert answer.json()["error"].startswith("The translation does not have the tags of the text.")


# --- of all APIs -------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/v1/chat/completions"])
@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ({"content": "{", "headers": {"content-type": "application/json"}}, 400, "is not JSON"),
        ({"content": "[]", "headers": {"content-type": "application/json"}}, 400, "JSON object"),
        ({"content": "a", "headers": {"content-type": "text/plain"}}, 415, "the content type"),
        ({"data": {"q": "a" * 2**18}}, 413, "A request may have at most 262,144 bytes."),
        ({"content": b"q=%ff", "headers": {}}, 415, "the content type"),
        (
            {
                "content": b"q=%ff",
                "headers": {"content-type": "application/x-www-form-urlencoded"},
            },
            400,
            "not a form in UTF-8",
        ),
    ],
)
def test_broken_requests_get_the_error_of_their_api(client, path, options, status, message):
    answer = client.post(path, **options)
    assert answer.status_code == status
    content = answer.json()
    text = content.get("message") or content["error"]
    text = text["message"] if isinstance(text, dict) else text
    assert message in text


@pytest.mark.parametrize(
    ("method", "path", "status", "key"),
    [
        *(("GET", "/nothing", 404, "error"), ("GET", "/translate", 405, "error")),
        *(("GET", "/v2/nothing", 404, "message"), ("GET", "/v2/translate", 405, "message")),
        *(("GET", "/v1/nothing", 404, "error"), ("GET", "/v1/chat/completions", 405, "error")),
    ],
)
def test_other_addresses_are_errors_in_json(client, method, path, status, key):
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.json()[key]


def test_each_api_takes_its_key_where_its_clients_send_it(serve, upper):
    client = serve(upper, keys=["secret", "é"])
    chats = {"messages": [{"role": "user", "content": "a"}]}
    for key, allowed in (("secret", True), ("é", True), ("wrong", False), ("", False)):
        statuses = [
            translate(client, q="a", api_key=key).status_code,
            client.post("/translate", data={"q": "a", "api_key": key, **EN_DE}).status_code,
            deepl(client, auth_key=key).status_code,
        ]
        if key and key.isascii():  # else no header can hold it
            headers = [{"Authorization": f"{x} {key}"} for x in ("DeepL-Auth-Key", "Bearer")]
            statuses += [
                client.get("/v2/usage", headers=headers[0]).status_code,
                client.post("/v1/chat/completions", json=chats, headers=headers[1]).status_code,
            ]
        assert {status == 200 for status in statuses} == {allowed}
        assert allowed or statuses in ([403, 403, 403], [403, 403, 403, 403, 401])
    assert client.post("/translate", json={"q": "a", **EN_DE}).status_code == 403
    assert client.get("/v1/models").json()["error"]["type"] == "authentication_error"
    assert client.get("/languages").status_code == 200
    assert client.get("/frontend/settings").json()["keyRequired"]


def test_each_line_of_a_text_is_translated_by_itself_in_batches(serve, upper):
    client = serve(upper)
    text = "\n".join(["", "  one two ", "\r", *["x"] * 300, ""])
    assert translate(client, q=text).json()["translatedText"] == text.upper()
    assert [len(batch) for batch in upper.batches] == [128, 128, 45]
    assert upper.batches[0][:2] == ["one two", "x"]
    assert translate(client, q=" \n\n").json()["translatedText"] == " \n\n"
    assert len(upper.batches) == 3  # no call for nothing


def test_a_text_of_more_lines_than_the_queue_holds_is_refused(serve, upper):
    client = serve(upper, capacity=10)
    answer = translate(client, q="a\n" * 11)
    assert answer.status_code == 413
    assert answer.json() == {"error": "The texts have 11 lines; at most 10 are allowed."}


def test_a_full_queue_is_an_error_with_a_time_to_retry(serve, upper):
    """The first text runs, the second one waits, and the third one finds no room."""
    client = serve(upper, capacity=1)
    upper.go.clear()
    threads = [threading.Thread(target=translate, args=(client,), kwargs={"q": "a"}) for _ in "ab"]
    started = threading.Event()
    upper_n_best = upper.n_best

    def n_best(texts, options):
        started.set()
        return upper_n_best(texts, options)

    upper.n_best = n_best
    threads[0].start()
    assert started.wait(60)
    threads[1].start()
    while "tf_transformer_queued_lines 1.0" not in client.get("/metrics").text:
        pass
    for answer in (translate(client, q="a"), deepl(client), chat(client, "a")):
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert "busy" in answer.text
    upper.go.set()
    for thread in threads:
        thread.join(60)
    assert translate(client, q="a").status_code == 200


def test_the_limits_are_those_of_the_options(serve, upper):
    client = serve(upper, limits=Limits(request_bytes=1000, texts=2, characters=10))
    assert translate(client, q=["a" * 10] * 2).status_code == 200
    assert translate(client, q=["a"] * 3).status_code == 400
    assert translate(client, q="a" * 11).status_code == 413
    assert translate(client, q="a", other="a" * 1000).status_code == 413
    assert chat(client, "a" * 11).status_code == 413
    assert client.get("/frontend/settings").json()["charLimit"] == 10


@pytest.mark.parametrize(
    ("origins", "allowed"),
    [([], None), (["https://a.example"], "https://a.example"), (["*"], "*")],
)
def test_pages_of_other_sites_may_read_answers_only_if_they_are_named(
    serve, upper, origins, allowed
):
    client = serve(upper, origins=origins)
    headers = {"Origin": "https://a.example"}
    for path, given in (("/translate", {"q": "a", **EN_DE}), ("/v2/translate", {})):
        answer = client.post(path, json=given, headers=headers)
        assert answer.headers.get("access-control-allow-origin") == allowed
    other = client.get("/languages", headers={"Origin": "https://b.example"})
    expected = "*" if allowed == "*" else None
    assert other.headers.get("access-control-allow-origin") == expected
    headers |= {"Access-Control-Request-Method": "POST"}
    headers |= {"Access-Control-Request-Headers": "authorization,content-type"}
    preflight = client.options("/v1/chat/completions", headers=headers)
    assert (preflight.status_code == 200) == bool(allowed)


def test_metrics_count_requests_texts_and_characters_and_the_server_is_healthy(client):
    translate(client, q=["one", "two"])
    translate(client, q=[])
    deepl(client, text=["defect"])
    page = client.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=")
    lines = page.text.splitlines()
    for line in (
        'tf_transformer_requests_total{api="libretranslate",status="200"} 1.0',
        'tf_transformer_requests_total{api="libretranslate",status="400"} 1.0',
        'tf_transformer_requests_total{api="deepl",status="500"} 1.0',
        'tf_transformer_request_seconds_count{api="deepl"} 1.0',
        "tf_transformer_texts_total 3.0",
        "tf_transformer_characters_total 12.0",
        "tf_transformer_queued_lines 0.0",
    ):
        assert line in lines
    assert client.get("/health").json() == {"status": "ok"}


# --- one model, several directions -------------------------------------------------------------

EN_DE_FR_AND_BACK = [
    Direction("en", "deu", ">>deu<<"),
    Direction("en", "fr", ">>fr<<"),
    Direction("de", "en", ">>en<<"),
]


@pytest.fixture
def several(serve, upper):
    return serve(upper, *EN_DE_FR_AND_BACK)


def test_each_api_lists_the_directions(several):
    targets = {row["code"]: row["targets"] for row in several.get("/languages").json()}
    assert targets == {"en": ["de", "fr"], "de": ["en"], "fr": []}
    listed = [
        [row["language"] for row in several.get("/v2/languages", params={"type": kind}).json()]
        for kind in ("source", "target")
    ]
    assert listed == [["EN", "DE"], ["DE", "FR", "EN"]]
    pairs = several.get("/v2/glossary-language-pairs").json()["supported_languages"]
    assert [(x["source_lang"], x["target_lang"]) for x in pairs] == [
        ("en", "de"),
        ("en", "fr"),
        ("de", "en"),
    ]
    models = [model["id"] for model in several.get("/v1/models").json()["data"]]
    assert models == ["upper:de", "upper:fr", "upper:en"]


def test_the_target_of_a_request_chooses_the_direction(several, upper):
    for send in (
        lambda: translate(several, q="one", target="fr"),
        lambda: deepl(several, target_lang="FR"),
        lambda: chat(several, "one", model="upper:fr"),
    ):
        assert send().status_code == 200
        assert upper.options == (("language", ">>fr<<"),)
    answer = translate(several, q="eins", source="auto", target="en").json()
    assert answer["detectedLanguage"]["language"] == "de"
    assert upper.options == (("language", ">>en<<"),)
    assert translate(several, q="one", target="DE").status_code == 200
    assert upper.options == (("language", ">>deu<<"),)


def test_a_direction_that_the_model_does_not_have_is_refused(several):
    answer = translate(several, q="eins", source="de", target="fr")
    assert answer.json()["error"] == 'This model does not translate from "de" to "fr".'
    answer = translate(several, q="one", target="it")
    assert answer.json()["error"].endswith("as target; this model has de, fr, en.")
    answer = chat(several, "one", model="upper")
    assert answer.status_code == 404
    assert answer.json()["error"]["message"].endswith("has upper:de, upper:fr, upper:en.")


def test_a_glossary_is_for_its_direction(several, upper):
    made = make_glossary(several, "one\tun", target_lang="fr").json()
    assert (made["source_lang"], made["target_lang"]) == ("en", "fr")
    named = {"glossary_id": made["glossary_id"]}
    assert deepl(several, target_lang="FR", **named).status_code == 200
    assert upper.options == (("language", ">>fr<<"), ("terms", "one\tun"))
    assert deepl(several, **named).json() == {"message": "The glossary is for en to fr."}
