"""A checker of pages: elements are closed in order, references are right, nothing is loaded."""

import html.parser

VOID = {"img", "input", "link", "meta"}
CONTROLS = {"button", "input", "output", "progress", "select", "textarea"}


class HtmlChecker(html.parser.HTMLParser):
    """Ids are unique, and those that attributes name exist; a label has one control at most."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.named = [], [], set()
        self.labelled = 0  # controls since the last label

    @classmethod
    def check(cls, page):
        """Fails if something is wrong with the text of a page."""
        checker = cls()
        checker.feed(page)
        checker.close()
        assert checker.open == []
        assert len(set(checker.ids)) == len(checker.ids)
        assert checker.named <= set(checker.ids)
        assert "http" not in page.replace("http://www.w3.org/2000/svg", "")

    def handle_starttag(self, tag, attributes):
        self.labelled = 0 if tag == "label" else self.labelled + (tag in CONTROLS)
        assert "label" not in self.open or self.labelled <= 1
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href"):
                assert value.startswith("data:"), "the page loads nothing"
                assert " " not in value, "write %20"
            if name == "id":
                self.ids.append(value)
            if name in ("aria-labelledby", "aria-describedby", "for"):
                self.named |= set(value.split())

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
