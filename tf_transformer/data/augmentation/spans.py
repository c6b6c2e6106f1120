"""Random spans of text that a translation copies: emoji, addresses, numbers, codes, tags, names.

An eighth of all spans, chosen by a hash, is held out: training never draws them. A test set of
held-out spans shows whether a model copies spans that it has not seen. Tags are not held out.
"""

import functools
import zlib
from collections.abc import Callable

import numpy as np

from tf_transformer.data.augmentation.name_lists import NAMES, NAMES_WITHOUT_ACCENTS
from tf_transformer.data.augmentation.pairs import chosen, happens

_HELD_OUT = 8  # one of this many
_WITHOUT_HELD_OUT = ("tag", "opening_tag")  # there are few of them

# All characters of these ranges have been emoji since Unicode 11, so every Python draws alike.
_FACES = range(0x1F600, 0x1F650)
_RANGES = (
    *(range(0x1F300, 0x1F600), range(0x1F680, 0x1F6D3), range(0x1F910, 0x1F93B)),
    *(range(0x1F947, 0x1F971), range(0x1F980, 0x1F9A3), range(0x1F9D0, 0x1FA00)),
)
_OTHER_EMOJI = (
    *("❤️", "✅", "✨", "☀️", "⭐", "❗", "❓", "☕", "✌️", "☺️", "⚡", "❌", "✈️", "♥️", "☎️", "➡️"),
    *("⚽", "⛄", "✔️", "⏰", "⚠️", "☔", "✍️", "☝️", "1️⃣", "2️⃣", "3️⃣", "#️⃣", "🏳️‍🌈", "❤️‍🔥"),
)
_PEOPLE = "👨👩🧑"
_PROFESSIONS = "💻🔬🎓🍳🌾🏫🎨🚒🚀🔧"
_HANDS = "👍👎👋🙏👏💪🤝✋👌🤞🤘👊"
_SKIN = tuple(map(chr, range(0x1F3FB, 0x1F400)))
_FLAGS = (
    *("AT", "AU", "BE", "BR", "CA", "CH", "CN", "CZ", "DE", "DK", "ES", "FI", "FR", "GB", "GR"),
    *("IE", "IL", "IN", "IT", "JP", "KR", "MX", "NL", "NO", "PL", "PT", "SE", "TR", "UA", "US"),
)

_WORDS = (
    *("news", "shop", "blog", "data", "forum", "travel", "music", "photo", "weather", "example"),
    *("docs", "mail", "book", "city", "garden", "museum", "library", "market", "school", "sport"),
    *("hello-world", "contact", "about", "products", "search", "login", "archive", "help", "map"),
    *("wiki", "video", "health", "kitchen", "science", "project", "report", "summary", "index"),
)
_ENDINGS = ("com", "org", "net", "de", "at", "ch", "eu", "io", "co.uk", "fr", "info", "edu", "gov")
_SYLLABLES = ("bcdfghklmnprstvwz", "aeiou")
_ACCENTED = ("bdfgklmnprstvzñčšžçłřśð", "aeioáéíóúäöüøåèêëîôãõěąıő")

_TAGS = (
    *("b", "i", "u", "em", "strong", "p", "span", "h1", "h2", "h3", "li", "td", "div", "code"),
    *("small", "sub", "sup", "mark", "title", "q", "a", "tt", "font", "label", "button", "g"),
)


def draw(kind: str, rng: np.random.Generator, held_out: bool = False) -> str:
    """Draws a span of a kind in `SPANS`, or a held-out one; no tags are held out."""
    make = functools.partial(SPANS[kind], rng)
    return make() if kind in _WITHOUT_HELD_OUT else _first(make, held_out)


def is_held_out(span: str) -> bool:
    """Whether training never draws this span."""
    return zlib.crc32(span.encode()) % _HELD_OUT == 0


def emoji(rng: np.random.Generator) -> str:
    """An emoji; some are sequences of characters, such as flags and hands with a skin tone."""
    way = rng.random()
    if way < 0.5:
        return chr(chosen(_FACES, rng))
    if way < 0.75:
        return chr(chosen(chosen(_RANGES, rng), rng))
    if way < 0.85:
        return chosen(_OTHER_EMOJI, rng)
    if way < 0.9:
        return "".join(chr(ord(letter) + 0x1F1A5) for letter in chosen(_FLAGS, rng))
    if way < 0.95:
        return chosen(_HANDS, rng) + chosen(_SKIN, rng)
    return chosen(_PEOPLE, rng) + "\u200d" + chosen(_PROFESSIONS, rng)


def url(rng: np.random.Generator) -> str:
    """An address of a page, like https://www.news-tralu.org/travel?id=31."""
    scheme = chosen(("https://", "https://", "https://www.", "http://", "www."), rng)
    path = "".join(f"/{_slug(rng)}" for _ in range(int(rng.integers(0, 4))))
    end = chosen(("", "", "", "/", ".html", ".pdf", f"?id={_digits(rng)}", f"#{_slug(rng)}"), rng)
    return scheme + _domain(rng) + path + (end if path else "")


def email(rng: np.random.Generator) -> str:
    """An e-mail address."""
    name = chosen((".", "_", "-", ""), rng).join((_slug(rng), _word(rng)))
    return f"{name}{_digits(rng) if happens(0.2, rng) else ''}@{_domain(rng)}"


def number(rng: np.random.Generator) -> str:
    """A number, date, time, price, version or telephone number that all languages write alike."""
    one, two, three = (int(rng.integers(0, limit)) for limit in (10, 60, 1000))
    day, month, year = int(rng.integers(1, 29)), 1 + two % 12, 1900 + int(rng.integers(0, 150))
    forms = (
        *(_digits(rng), _digits(rng), f"{three}", f"{year}", f"{one}.{two}", f"{three},{one}"),
        *(f"{day % 24}:{two:02}", f"{year}-{month:02}-{day:02}", f"{day:02}.{month:02}.{year}"),
        *(f"{day}/{month}/{year}", f"{two}%", f"${three}", f"€{three}", f"{one}.{day}.{two}"),
        *(f"+{two} {three} {_digits(rng)}{two:02}", f"{three}-{two:02}{day:02}"),
        *(f"{one + 1},{three:03}", f"{one + 1}.{three:03}", f"{two}-{two + one + 1}"),
    )
    return chosen(forms, rng)


def code(rng: np.random.Generator) -> str:
    """A code: of a product, a flight, a file, a variable, a version."""
    letters = "".join(chosen("ABCDEFGHJKLMNPRSTUVWXYZ", rng) for _ in range(rng.integers(1, 4)))
    digits, word = _digits(rng), _word(rng)
    forms = (
        *(f"{letters}-{digits}", f"{letters}{digits}", f"#{digits}", f"{letters}_{digits}"),
        *(f"{word}_{digits}.txt", f"{word}.{chosen(('pdf', 'py', 'csv', 'png'), rng)}"),
        *(f"{word}_{_word(rng)}", f"/{word}/{_word(rng)}", f"{word}()", f"v{digits}"),
        *(f"{int(rng.integers(2**28)):07x}", f"{letters}/{digits}", f"{digits}{letters}"),
    )
    return chosen(forms, rng)


def tag(rng: np.random.Generator) -> str:
    """A tag that stands alone: of markup, of a template, a mention or a topic."""
    word = chosen((_word(rng), chosen(_WORDS, rng)), rng)
    forms = (
        *("<br>", "<br/>", "<hr/>", f'<img src="{word}.png"/>', f"<{word}/>"),
        *(f"{{{word}}}", f"{{{{{word}}}}}", f"${{{word}}}", f"%({word})s", f"%{word}%"),
        *("%s", "%d", f"{{{rng.integers(10)}}}", f"[{rng.integers(1, 100)}]", f"<x id={word}>"),
        *(f"@{word}", f"#{word}", f"[{word}]", f"&{word};", f":{word}:"),
    )
    return chosen(forms, rng)


def opening_tag(rng: np.random.Generator) -> str:
    """The opening tag of an element; `closing_tag` has its end."""
    element = chosen(_TAGS, rng)
    attribute = chosen(("", "", "", f' class="{_word(rng)}"', f' id="{rng.integers(1, 99)}"'), rng)
    return f"<{element}{attribute}>"


def closing_tag(opening: str) -> str:
    """The closing tag of an opening tag."""
    return f"</{opening[1:-1].partition(' ')[0]}>"


def name(rng: np.random.Generator) -> str:
    """A name of a person or a city, or an invented name. Most have accents."""
    if happens(0.6, rng):
        return chosen(NAMES, rng)
    syllables = _ACCENTED if happens(0.7, rng) else _SYLLABLES
    return _invented(syllables, rng).capitalize()


def changed_name(rng: np.random.Generator) -> str:
    """A name with one or two other letters, so that a model copies names that it has not seen."""
    letters = list(chosen(NAMES, rng))
    places = [place for place, letter in enumerate(letters) if place and letter != " "]
    for place in rng.permutation(places)[: rng.integers(1, 3)]:
        letters[place] = chosen("".join(_ACCENTED + _SYLLABLES), rng)
    return "".join(letters)


def name_without_accents(rng: np.random.Generator) -> str:
    """A usual name of a person or a city, without accents."""
    return chosen(NAMES_WITHOUT_ACCENTS, rng)


def joined_name(rng: np.random.Generator) -> str:
    """The start of a usual name and the end of another: like a name, but rarely in a list."""
    first, last = (chosen(NAMES_WITHOUT_ACCENTS, rng) for _ in range(2))
    return (first[: rng.integers(2, 5)] + last[-rng.integers(2, 5) :]).capitalize()


def name_like(word: str, rng: np.random.Generator) -> str:
    """An invented name that begins like a word, so that a model does not translate its start."""
    syllables = chosen((_ACCENTED, _SYLLABLES), rng)

    def make() -> str:
        return word[: rng.integers(2, 5)].capitalize() + _invented(syllables, rng, least=1)

    return _first(make, held_out=False)


SPANS: dict[str, Callable[[np.random.Generator], str]] = {
    make.__name__: make
    for make in (
        *(emoji, url, email, number, code, tag, opening_tag),
        *(name, changed_name, name_without_accents, joined_name),
    )
}
"""The kinds of spans by name."""


def _first(make: Callable[[], str], held_out: bool) -> str:
    """Makes spans until one is held out, or until one is not."""
    while is_held_out(span := make()) != held_out:
        pass
    return span


def _digits(rng: np.random.Generator) -> str:
    return str(int(rng.integers(10 ** int(rng.integers(1, 6)))))


def _word(rng: np.random.Generator) -> str:
    return _invented(_SYLLABLES, rng)


def _invented(syllables: tuple[str, str], rng: np.random.Generator, least: int = 2) -> str:
    """A word of `least` syllables or one more."""
    starts, vowels = syllables
    parts = (
        chosen(starts, rng) + chosen(vowels, rng) for _ in range(rng.integers(least, least + 2))
    )
    return "".join(parts) + (chosen(starts, rng) if happens(0.4, rng) else "")


def _slug(rng: np.random.Generator) -> str:
    way = rng.random()
    if way < 0.5:
        return chosen(_WORDS, rng)
    return _digits(rng) if way < 0.6 else _word(rng)


def _domain(rng: np.random.Generator) -> str:
    first = chosen((_word(rng), chosen(_WORDS, rng), f"{chosen(_WORDS, rng)}-{_word(rng)}"), rng)
    return f"{first}.{chosen(_ENDINGS, rng)}"
