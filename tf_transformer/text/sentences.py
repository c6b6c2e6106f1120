"""A simple rule that finds lines with several sentences, for a notice to the user."""

import re

# A mark at the end of a sentence, closing quotes, a space, opening quotes, the next character.
_END = re.compile(r"""[.!?…]["'”’»)\]]*\s+["'“„‘‚«(\[¿¡]*(\w)""")
_FULL_WIDTH_END = re.compile(r"[。！？｡][」』”’）]*\s*\w")
_LONGEST_WORD = 12  # characters before a full stop: a longer word is not an abbreviation
_ABBREVIATION = re.compile(
    "mr|mrs|ms|dr|prof|st|nr|no|vs|etc|jr|sr|inc|ltd|co|gen|col|capt|rev|hon|messrs|fig|vol|"
    r"bzw|usw|ca|hr|fr|hl|abs|art|bd|str|tel|zb|mme|mlle|sra|srta|lic|ing|(\w\.)*\w"
)


def has_several_sentences(text: str) -> bool:
    """Whether a text has more than one sentence.

    A sentence ends with `.`, `!`, `?` or `…` before a space and a letter that is not lower-case.
    Chinese and Japanese marks also end a sentence. The full stops of initials and common
    abbreviations do not count.

    Example:
        >>> has_several_sentences("Tom left. Mary stayed."), has_several_sentences("Mr. T. Smith")
        (True, False)
    """
    if _FULL_WIDTH_END.search(text):
        return True
    return any(
        match[1].isalpha() and not match[1].islower() and not _is_abbreviation(text, match.start())
        for match in _END.finditer(text)
    )


def _is_abbreviation(text: str, stop: int) -> bool:
    """Whether the full stop at index `stop` belongs to an abbreviation."""
    before = text[max(0, stop - _LONGEST_WORD) : stop].casefold()
    word = re.sub(r".*\s|^\W+", "", before, flags=re.DOTALL)
    return text[stop] == "." and bool(_ABBREVIATION.fullmatch(word))
