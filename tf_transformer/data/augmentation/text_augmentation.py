"""Changes the texts of the batches of a training run at random; see `AugmentConfig`."""

import dataclasses
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tf_transformer.config import AugmentConfig
from tf_transformer.data.augmentation import copies, inline_terms, noise, typography
from tf_transformer.data.augmentation.pairs import Change, Pair, happens
from tf_transformer.data.corpora import UNKNOWN
from tf_transformer.data.examples import ExampleStream
from tf_transformer.data.readers import Languages
from tf_transformer.data.readers.text import FIELDS
from tf_transformer.data.tokens import IdRows, TokenExamples
from tf_transformer.data.word_links import MULTIPLE
from tf_transformer.text.codec import Codec
from tf_transformer.text.special_ids import UNK_ID
from tf_transformer.text.target_tag import split_tag
from tf_transformer.text.terms import Term
from tf_transformer.text.word_alignment import LINKS

MOST_JOINED = 4  # sentences on a line
# Changes of whole texts. The rare characters of names and copied spans would become pieces, too.
OF_VOCABULARY = ("end_mark", "upper", "title", "lower", "typography")


def changes(languages: Languages = UNKNOWN, glossary: Sequence[Term] = ()) -> dict[str, Change]:
    """All changes of a pair by the name of their option, in the order in which they are made.

    Names are replaced before the case changes. Typos and stray spaces leave copied spans intact.
    Terms of the glossary come last, so that no span stands in one.
    """
    return {
        "names": copies.names,
        "end_mark": typography.without_end_mark,
        "upper": typography.upper,
        "title": typography.title,
        "lower": typography.lower,
        "typography": typography.typography_of(*languages),
        "typos": noise.typos,
        "spaces": noise.spaces,
        "copy": copies.copy,
        "terms": inline_terms.of_glossary(glossary),
    }


def changed_texts(
    stream: ExampleStream,
    rates: AugmentConfig,
    seed: int,
    languages: Languages = UNKNOWN,
    glossary: Sequence[Term] = (),
) -> ExampleStream:
    """The examples of a stream with the changes `OF_VOCABULARY`, and with terms of a glossary.

    A vocabulary learns from them. Without them, a text in capitals would be divided into single
    letters. The rates are the shares of the pairs that changes are made in.
    """
    made = [
        (change, getattr(rates, name))
        for name, change in changes(languages, glossary).items()
        if name in OF_VOCABULARY or (name == "terms" and glossary)
    ]

    def start(skipped: Counter[str]) -> Iterator[Pair]:
        rng = np.random.default_rng((seed, 6))
        for source, target in stream.start(skipped):
            pair = source, target
            for change, rate in made:
                pair = change(pair, rng) if happens(rate, rng) else pair
            yield pair

    return dataclasses.replace(stream, start=start)


@dataclasses.dataclass(frozen=True)
class TextAugmentation:
    """Changes examples as text: decodes some of them, changes the texts, and encodes them again.

    An example stays as it is if its text has no change of this kind. It also stays if the new ids
    would be more than `max_length`, or if the vocabulary cannot represent the old or the new text.

    Args:
        rates: the share of the examples that each change is made in.
        codec: the tokenizers.
        max_length: largest number of ids in a row.
        seed: seed of all draws. The result depends on seed, window number and examples only.
        languages: codes of the source and target language, like en; None: unknown.
        glossary: the terms of the change `terms`.

    Returns:
        the examples of a window that stay as they are, then the changed ones.
    """

    rates: AugmentConfig
    codec: Codec
    max_length: int
    seed: int
    languages: Languages = UNKNOWN
    glossary: Sequence[Term] = ()

    @functools.cached_property
    def _changes(self) -> list[tuple[Change, float]]:
        made = changes(self.languages, self.glossary).items()
        return [(change, rate) for name, change in made if (rate := getattr(self.rates, name))]

    def __call__(self, number: int, examples: TokenExamples) -> TokenExamples:
        rng = np.random.default_rng((self.seed, number, 5))
        groups = joined(examples, self.rates.join, self.max_length, rng, list(self._tags.values()))
        drawn = [rng.random(len(groups)) < rate for _, rate in self._changes]
        is_drawn = np.any(drawn, axis=0) if drawn else np.zeros(len(groups), bool)
        changed = [i for i, group in enumerate(groups) if len(group) > 1 or is_drawn[i]]
        if not changed:
            return examples
        members = [member for i in changed for member in groups[i]]
        texts = dict(zip(members, self._decoded(examples, members), strict=True))
        pairs: dict[int, Pair] = {}
        for i in changed:
            known = [pair for member in groups[i] if (pair := texts[member])]
            sources = [split_tag(source, self._tags) for source, _ in known]
            if len(known) == len(groups[i]):
                parts = [(text, pair[1]) for (_, text), pair in zip(sources, known, strict=True)]
                pair = typography.one_line(parts, rng) if len(parts) > 1 else parts[0]
                for (change, _), chosen in zip(self._changes, drawn, strict=True):
                    pair = change(pair, rng) if chosen[i] else pair
                tag = sources[0][0]
                pairs[i] = f"{tag} {pair[0]}" if tag else pair[0], pair[1]
        return self._with_new(examples, groups, pairs)

    @functools.cached_property
    def _tags(self) -> Mapping[str, int]:
        """The ids of the tags that a source may start with. No change concerns them."""
        return self.codec[FIELDS[0]].tags

    def _decoded(self, examples: TokenExamples, indices: Sequence[int]) -> list[Pair | None]:
        """The texts of examples; None for an example whose text does not have its ids."""
        taken = examples.taken(np.array(indices, int))
        rows = {name: [row.tolist() for row in taken[name].split()] for name in FIELDS}
        texts = {name: [self.codec.decode(name, row) for row in rows[name]] for name in FIELDS}
        tags = {token: f"{tag} " for tag, token in self._tags.items()}
        if tags:
            sources = zip(rows[FIELDS[0]], texts[FIELDS[0]], strict=True)
            texts[FIELDS[0]] = [tags.get(row[0], "") + text for row, text in sources]
        again = {name: self.codec.encode_batch(name, texts[name]) for name in FIELDS}
        return [
            pair if all(again[name][i] == rows[name][i] for name in FIELDS) else None
            for i, pair in enumerate(zip(*texts.values(), strict=True))
        ]

    def _with_new(
        self, examples: TokenExamples, groups: Sequence[Sequence[int]], pairs: Mapping[int, Pair]
    ) -> TokenExamples:
        """The examples, with pairs of texts in place of the groups of their numbers."""
        sides = zip(*pairs.values(), strict=True) if pairs else ((), ())
        encoded = map(self.codec.encode_batch, FIELDS, sides)
        rows = [
            (i, *new)
            for i, *new in zip(pairs, *encoded, strict=True)
            if all(1 < len(row) <= self.max_length and UNK_ID not in row for row in new)
        ]
        replaced = {i for i, *_ in rows}
        stays = np.ones(len(examples), bool)
        stays[[member for i in replaced for member in groups[i]]] = False
        kept = examples.taken(np.flatnonzero(stays))
        new = {
            name: IdRows.from_lists([row[side] for row in rows], examples[name].ids.dtype)
            for side, name in enumerate(FIELDS, 1)
        }
        if LINKS in examples.rows:  # the words of changed texts have other places
            new[LINKS] = IdRows.from_lists([[0] * MULTIPLE] * len(rows), examples[LINKS].ids.dtype)
        return TokenExamples.concatenated([kept, TokenExamples(new)])


def joined(
    examples: TokenExamples,
    rate: float,
    max_length: int,
    rng: np.random.Generator,
    tags: Sequence[int] = (),
) -> list[list[int]]:
    """Divides examples into groups that are joined to one line; most groups have one example.

    Neighbours in a random order are joined if they start with the same id of `tags`, or none. The
    rate is the share of the groups that have 2 to `MOST_JOINED` examples. All lengths of a joined
    line are at most `max_length`. The result has the indices of the examples of each group.
    """
    if not rate:
        return [[i] for i in range(len(examples))]
    lengths = np.stack([examples[name].lengths for name in FIELDS]) - 1  # without the end token
    sources = examples[FIELDS[0]]
    first = sources.ids[np.cumsum(sources.lengths) - sources.lengths]
    kinds = np.where(np.isin(first, tags), first, 0)
    order = rng.permutation(len(examples))
    order = order[np.argsort(kinds[order], kind="stable")].tolist()
    is_joined = rng.random(len(order)) < rate
    sizes = np.where(is_joined, rng.integers(2, MOST_JOINED + 1, len(order)), 1).tolist()
    groups: list[list[int]] = []
    start = 0
    while start < len(order):
        group = order[start : start + sizes[len(groups)]]
        while len(group) > 1 and (
            lengths[:, group].sum(axis=1).max() >= max_length or kinds[group[0]] != kinds[group[-1]]
        ):
            group.pop()
        groups.append(group)
        start += len(group)
    return groups
