"""Any paragraphs of Word: each element and each letter stays, whatever the translation is."""

import collections
import io
import zipfile

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from tf_transformer.documents import Options, read_document, translated

NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
FORMATTING = {f"{{{NAMESPACE}}}{name}" for name in ("r", "t", "rPr", "b", "proofErr")}
PARTS = st.sampled_from(
    [
        '<w:r><w:t xml:space="preserve">word </w:t></w:r>',
        '<w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">bold </w:t></w:r>',
        "<w:r><w:t>a</w:t><w:footnoteReference w:id='2'/><w:t>b</w:t></w:r>",
        *("<w:r><w:tab/></w:r>", "<w:r><w:br/></w:r>", "<w:proofErr/>", "<!-- c -->"),
        *(f'<w:r><w:fldChar w:fldCharType="{x}"/></w:r>' for x in ("begin", "separate", "end")),
        *("<w:r><w:instrText>PAGE</w:instrText></w:r>", "<w:bookmarkEnd w:id='1'/>"),
        *("<w:bookmarkStart w:id='1'/>", "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"),
    ]
)
AROUND = st.sampled_from(
    [
        "<w:hyperlink w:anchor='x'>{}</w:hyperlink>",
        "<w:ins w:id='3'>{}</w:ins>",
        "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>",
        "<w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>",
    ]
)
CONTENT = st.recursive(
    PARTS,
    lambda inner: st.builds(
        lambda around, parts: around.format("".join(parts)), AROUND, st.lists(inner, max_size=4)
    ),
    max_leaves=12,
)


def shuffled(random):
    def translate(texts):
        return [" ".join(random.sample(x, len(x))) for x in (text.split(" ") for text in texts)]

    return translate


def content_of(document):
    """The elements that are no formatting, and the letters of all texts."""
    from lxml import etree

    root = etree.fromstring(document)
    elements = collections.Counter(
        (x.tag, *x.items()) for x in root.iter(etree.Element) if x.tag not in FORMATTING
    )
    return elements, sorted("".join(x.text or "" for x in root.iter(f"{{{NAMESPACE}}}t")))


@settings(max_examples=60)
@given(st.lists(CONTENT, max_size=8), st.randoms(use_true_random=False))
def test_each_element_and_each_letter_stays(tmp_path_factory, parts, random):
    pytest.importorskip("docx")
    import docx

    base, content = io.BytesIO(), io.BytesIO()
    docx.Document().save(base)
    body = f"<w:body><w:p><w:pPr/>{''.join(parts)}</w:p></w:body>"
    document = f'<w:document xmlns:w="{NAMESPACE}">{body}</w:document>'.encode()
    with zipfile.ZipFile(base) as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            new.writestr(name, document if name == "word/document.xml" else old.read(name))
    path = tmp_path_factory.getbasetemp() / "in.docx"
    path.write_bytes(content.getvalue())
    result, _ = translated(read_document(path, Options("en")), shuffled(random))
    with zipfile.ZipFile(io.BytesIO(result)) as new:
        assert content_of(new.read("word/document.xml")) == content_of(document)
