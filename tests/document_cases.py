"""Documents of each format with given texts, and readers of other projects for them."""

import html
import io
import json
import re
from xml.sax.saxutils import escape

TAG = re.compile(r"(<[^>]*>)")


def upper(texts):
    """A stand-in for a model: capitals, except in tags."""
    return ["".join(x if TAG.fullmatch(x) else x.upper() for x in TAG.split(t)) for t in texts]


# --- markdown --------------------------------------------------------------------------------


def make_markdown(texts):
    blocks = ["---\ntitle: front\n---", "```\ncode stays\n```"]
    forms = ("# {}", "- {}", "> {}", "{}", "1. **{}**", "| {} |\n|---|\n| `x` |")
    blocks += [forms[n % len(forms)].format(text) for n, text in enumerate(texts)]
    return "\n\n".join(blocks).encode() + b"\n"


def texts_of_markdown(content):
    import lxml.html
    from markdown_it import MarkdownIt

    assert content.startswith(b"---\ntitle: front\n---\n")
    page = MarkdownIt("commonmark").enable("table").render(content.decode())
    parts = [text.strip() for text in lxml.html.fromstring(page).itertext()]
    return [text for text in parts if text not in ("", "title: front", "code stays", "x")]


# --- html ------------------------------------------------------------------------------------


def make_html(texts):
    forms = ("<p>{}</p>", "<h1 class='a'>{}</h1>", "<li><b>{}</b>", '<img alt="{}">', "<td>{}")
    blocks = [forms[n % len(forms)].format(html.escape(text)) for n, text in enumerate(texts)]
    head = "<html lang=en><head><script>if (a < b) 'stays'</script></head><body>\n"
    return (head + "\n".join(blocks) + "\n<pre>stays</pre></body></html>").encode()


def texts_of_html(content):
    import lxml.html

    texts = []
    for element in lxml.html.document_fromstring(content.decode()).iter():
        if element.tag not in ("script", "pre"):
            texts += [element.get("alt"), element.text]
        texts.append(element.tail)
    return [text.strip() for text in texts if text and text.strip()]


# --- srt -------------------------------------------------------------------------------------


def make_srt(texts):
    cues = [
        f"{n}\n00:{n // 60:02}:{n % 60:02},000 --> 00:{n // 60:02}:{n % 60:02},900\n{text}.\n"
        for n, text in enumerate(texts, 1)
    ]
    return "\n".join(cues).encode()


def texts_of_srt(content):
    cues = [cue.split("\n") for cue in content.decode().strip().split("\n\n")]
    assert [int(cue[0]) for cue in cues] == list(range(1, len(cues) + 1))
    assert all(" --> " in cue[1] for cue in cues)
    return ["\n".join(cue[2:]).removesuffix(".") for cue in cues]


# --- po --------------------------------------------------------------------------------------


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)


def make_po(texts):
    head = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    done = 'msgid "done: stays"\nmsgstr "fertig"\n\n#~ msgid "obsolete"\n#~ msgstr "alt"\n'
    messages = [
        f'#: a.c:{n}\nmsgctxt "{n}"\nmsgid {_quoted(text)}\nmsgstr ""\n\n'
        for n, text in enumerate(texts)
    ]
    return (head + "".join(messages) + done).encode()


def texts_of_po(content):
    import polib

    messages = polib.pofile(content.decode())
    assert messages.find("done: stays").msgstr == "fertig"
    assert [x.msgid for x in messages.obsolete_entries()] == ["obsolete"]
    new = [x for x in messages if x.msgctxt]
    assert all(x.fuzzy for x in new if x.msgstr)
    return [x.msgstr or x.msgid for x in new]


# --- json ------------------------------------------------------------------------------------


def make_json(texts):
    value = None
    for n, text in enumerate(reversed(texts)):
        value = {"key": text, "n": n / 3, "list": [value, True]}
    return json.dumps(value, indent=3, ensure_ascii=len(texts) % 2 == 0).encode()


def texts_of_json(content):
    texts, value = [], json.loads(content)
    while value:
        texts.append(value["key"])
        value = value["list"][0]
    return texts


# --- xliff and tmx ---------------------------------------------------------------------------


def make_xliff_1(texts):
    units = "".join(
        f'<trans-unit id="{n}" xml:space="preserve">\n<source>{escape(text)}</source>'
        "\n<note>stays</note></trans-unit>\n"
        for n, text in enumerate(texts)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<xliff version="1.2" '
        'xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" datatype="plaintext" '
        f'source-language="en-US"><body>{units}</body></file></xliff>'
    ).encode()


def make_xliff_2(texts):
    units = "".join(
        f'<unit id="{n}" xml:space="preserve"><segment>\n<source>{escape(text)}</source>\n'
        "</segment></unit>\n"
        for n, text in enumerate(texts)
    )
    return (
        '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en">'
        f'<file id="f">{units}</file></xliff>'
    ).encode()


def make_tmx(texts):
    units = "".join(
        f'<tu tuid="{n}">\n<tuv xml:lang="en"><seg>{escape(text)}</seg></tuv>\n</tu>\n'
        for n, text in enumerate(texts)
    )
    return (
        '<?xml version="1.0"?><tmx version="1.4"><header creationtool="a" creationtoolversion="1" '
        'segtype="block" o-tmf="a" adminlang="en" srclang="en" datatype="plaintext"/>'
        f"<body>{units}</body></tmx>"
    ).encode()


def texts_of_xml(units):
    """A reader of the last text of each unit."""

    def texts_of(content):
        from lxml import etree

        texts = "*[local-name() = 'source' or local-name() = 'target' or local-name() = 'seg']"
        root = etree.fromstring(content)
        return [
            x.xpath(f".//{texts}")[-1].text for x in root.xpath(f"//*[local-name() = '{units}']")
        ]

    return texts_of


# --- docx ------------------------------------------------------------------------------------


def make_docx(texts):
    import docx

    document = docx.Document()
    for n, text in enumerate(texts):
        paragraph = document.add_paragraph()
        paragraph.add_run(text).bold = n % 2 == 1
    content = io.BytesIO()
    document.save(content)
    return content.getvalue()


def texts_of_docx(content):
    import docx

    return [paragraph.text for paragraph in docx.Document(io.BytesIO(content)).paragraphs]


# --- txt -------------------------------------------------------------------------------------


def make_text(texts):
    return "\r\n".join(["", *(f"  {text}" for text in texts), ""]).encode()


def texts_of_text(content):
    first, *lines, last = content.decode().split("\r\n")
    assert (first, last) == ("", "")
    return [line.removeprefix("  ") for line in lines]


CASES = {  # ending: how to make a document, how to read its texts, packages that this needs
    ".txt": (make_text, texts_of_text, ()),
    ".md": (make_markdown, texts_of_markdown, ("markdown_it", "lxml")),
    ".html": (make_html, texts_of_html, ("lxml",)),
    ".srt": (make_srt, texts_of_srt, ()),
    ".po": (make_po, texts_of_po, ("polib",)),
    ".json": (make_json, texts_of_json, ()),
    ".xliff": (make_xliff_1, texts_of_xml("trans-unit"), ("lxml",)),
    ".xlf": (make_xliff_2, texts_of_xml("unit"), ("lxml",)),
    ".tmx": (make_tmx, texts_of_xml("tu"), ("lxml",)),
    ".docx": (make_docx, texts_of_docx, ("lxml", "docx")),
}
