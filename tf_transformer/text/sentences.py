"""Whether a line has several sentences, by a simple rule for a notice."""

import re

# A mark that ends a sentence, closing quotes, a space, opening quotes, and the next character.
_END = re.compile(r"""[.!?…]["'”’»)\]]*\s+["'“„‘‚«(\[¿¡]*(\w)""")
_FULL_WIDTH_END = re.compile(r"[。！？｡][」』”’）]*\s*\w")
_LONGEST_WORD = 12  # before a full stop: longer ones are no abbreviation
_ABBREVIATION = re.compile(
    "mr|mrs|ms|dr|prof|st|nr|no|vs|etc|jr|sr|inc|ltd|co|gen|col|capt|rev|hon|messrs|fig|vol|"
    r"bzw|usw|ca|hr|fr|hl|abs|art|bd|str|tel|zb|mme|mlle|sra|srta|lic|ing|(\w\.)*\w"
)


def has_several_sentences(text: str) -> bool:
    """Whether a sentence ends inside the text.

    It ends with a mark before a space and a letter that is not lower-case, or with a mark of
    Chinese or Japanese. Initials and common abbreviations end no sentence.

    Example:
        >>> has_several_sentences("Tom left. Mary stayed.")
        True
        >>> has_several_sentences("Mr. Smith met J. R. Brown at 5 p.m. on Monday.")
        False
    """
    if _FULL_WIDTH_END.search(text):
        return True
    return any(
        match[1].isalpha() and not match[1].islower() and not _is_abbreviation(text, match.start())
        for match in _END.finditer(text)
    )


def _is_abbreviation(text: str, stop: int) -> bool:
    """Whether the full stop at a place belongs to the word before it."""
    before = text[max(0, stop - _LONGEST_WORD) : stop].casefold()
    word = re.sub(r".*\s|^\W+", "", before, flags=re.DOTALL)
    return text[stop] == "." and bool(_ABBREVIATION.fullmatch(word))
