"""A self-contained HTML page about corpora, and its tables as text."""

import base64
import html
import importlib.resources
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tf_transformer.data.examples import reasons
from tf_transformer.data.inspection import (
    MOST_DETECTED,
    MOST_NEAR,
    MOST_WORDS,
    SIDES,
    CorpusReport,
    Example,
    Inspection,
    Overlap,
    SideCounts,
)
from tf_transformer.data.rules import LANGUAGE, OF_OPUSFILTER, RULES
from tf_transformer.files.aligned import aligned
from tf_transformer.visualization import charts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CONTENT = "<!-- content -->"
_LONGEST = 300  # characters of a text in an example
_SAMPLED = 20  # pairs of each corpus that the page shows
_BARS = 40  # of a chart
REPEATED = "repeated"  # pairs of an earlier corpus


class Table(NamedTuple):
    """A table: its title, a sentence about it, and cells, of which numbers are aligned right."""

    title: str
    note: str
    header: list[str]
    rows: list[list[str]]

    def __str__(self) -> str:
        lines = aligned([self.header, *self.rows], lambda _, cell: _is_number(cell))
        return "\n".join([self.title, *lines])


def tables(inspection: Inspection, languages: Sequence[Sequence[Counter[str]]] = ()) -> list[Table]:
    """The tables of an inspection.

    Args:
        inspection: the reports of all corpora.
        languages: for each corpus, the detected languages of both sides; empty: unknown.
    """
    corpora = inspection.corpora
    made = [_sizes(corpora), _faults(corpora), _texts(corpora, languages)]
    return made + ([_overlaps(inspection.overlaps)] if inspection.overlaps else [])


def corpus_page(
    inspection: Inspection, languages: Sequence[Sequence[Counter[str]]] = (), notes: str = ""
) -> str:
    """The page; its template is `corpus_page.html`. The arguments are those of `tables`.

    `notes` stand below the title. The page has charts if matplotlib is installed.
    """
    sizes, faults, texts, *overlaps = tables(inspection, languages)
    corpora = inspection.corpora
    parts = [
        *(f"<p>{html.escape(line)}</p>" for line in filter(None, notes.split("\n"))),
        *(_as_html(sizes), _as_html(faults), *map(_examples_of_rules, corpora)),
        *(_as_html(table) for table in overlaps),
        *map(_examples_of_overlap, inspection.overlaps),
        *(_as_html(texts), *(map(_charts, corpora) if charts.is_available() else [])),
        "<h2>Samples</h2>",
        *map(_sample, corpora),
    ]
    template = importlib.resources.files(__package__).joinpath("corpus_page.html")
    return template.read_text("utf-8").replace(_CONTENT, "\n".join(filter(None, parts)))


def _sizes(corpora: Sequence[CorpusReport]) -> Table:
    header = ["split", "corpus", "pairs", "words of source", "words of target"]
    header += ["distinct sources", "distinct targets", "skipped"]
    rows = [
        [
            *(report.split, report.name, f"{report.pairs:,}"),
            *(f"{side.words:,}" for side in report.sides),
            *(f"{side.distinct:,}" for side in report.sides),
            reasons(report.skipped) or "0",
        ]
        for report in corpora
    ]
    note = "Words stand between spaces. Training skips pairs with an empty or unreadable side."
    return Table("Sizes", note, header, rows)


def _faults(corpora: Sequence[CorpusReport]) -> Table:
    """Rules in rows, corpora in columns."""
    names = [report.name for report in corpora]
    others = {name for report in corpora for name in report.findings} - RULES.keys()
    helps = {name: rule.help for name, rule in RULES.items()}
    rows = [
        [
            *(name, "yes" if name in RULES and RULES[name].recommended else "", text),
            *(_found(report, name) for report in corpora),
        ]
        for name, text in (helps | dict.fromkeys(sorted(others), OF_OPUSFILTER)).items()
    ]
    rows += [
        [f"near {side}s", "", f"the {side} is near an earlier one"]
        + [_part(report.near[side].count, report.pairs) for report in corpora]
        for side in SIDES
        if all(report.near for report in corpora)
    ]
    if any(report.repeated for report in corpora):
        counts = (
            report.repeated and _part(report.repeated.count, report.pairs) for report in corpora
        )
        rows.append(
            [REPEATED, "", "an earlier corpus has the same texts", *(x or "–" for x in counts)]
        )
    note = (
        "Pairs with a fault. --data.clean recommended leaves out those of recommended rules; other "
        "rules can be named there. Near texts share 70 % of their sequences of four characters; "
        f"the first {MOST_NEAR:,} distinct ones are compared. The languages of the first "
        f"{MOST_DETECTED:,} pairs are detected."
    )
    return Table("Faults", note, ["rule", "recommended", "pairs in which", *names], rows)


def _found(report: CorpusReport, rule: str) -> str:
    """The pairs that a rule finds; "–" if it was not tested."""
    if rule not in report.findings:
        return "–"
    tested = min(report.pairs, MOST_DETECTED) if rule == LANGUAGE else report.pairs
    return _part(report.findings[rule].count, tested)


def _texts(corpora: Sequence[CorpusReport], languages: Sequence[Sequence[Counter[str]]]) -> Table:
    header = ["corpus", "side", "median", "95 %", "99 %", "longest", "distinct words"]
    header += ["Heaps' law", "scripts", *(["languages"] if languages else [])]
    rows = [
        [
            *(report.name, name, *(f"{side.length(share):,}" for share in (0.5, 0.95, 0.99, 1))),
            f"{side.distinct_words:,}{'+' * (side.distinct_words >= MOST_WORDS)}",
            _heaps(side),
            _shares(side.scripts()),
            *([_shares(languages[number][place])] if languages else []),
        ]
        for number, report in enumerate(corpora)
        for place, (name, side) in enumerate(zip(SIDES, report.sides, strict=True))
    ]
    note = (
        "Lengths are words. Heaps' law is the number of distinct words as a function of the number "
        "n of all words. Scripts are those of letters; languages are detected in a random sample."
    )
    return Table("Texts", note, header, rows)


def _overlaps(overlaps: Sequence[Overlap]) -> Table:
    near = [f"near {side}" for side in SIDES if overlaps[0].near]
    header = ["lines of", "that are in", "lines", "source", "target", "both", *near]
    rows = [
        [overlap.held_out, overlap.split, f"{overlap.pairs:,}"]
        + [_part(part.count, overlap.pairs) for part in overlap.exact.values()]
        + [_part(part.count, overlap.pairs) for part in overlap.near.values()]
        for overlap in overlaps
    ]
    note = (
        "Lines of validation and test text whose texts are in another split, too. Scores of such "
        "lines are too high. Texts are equal without regard to spaces and to their Unicode form."
    )
    return Table("Overlap", note, header, rows)


def _part(count: int, total: int) -> str:
    """A number, with its share of all."""
    return f"{count:,} ({100 * count / max(total, 1):.2g} %)" if count else "0"


def _heaps(side: SideCounts) -> str:
    law = side.heaps()
    return f"{law[0]:.1f} · n^{law[1]:.2f}" if law else "too few words"


def _shares(counts: Counter[str], most: int = 4) -> str:
    """The largest counts as percentages, without those below 0.1 %."""
    total = max(counts.total(), 1)
    return ", ".join(
        f"{name} {100 * count / total:.3g} %"
        for name, count in counts.most_common(most)
        if count / total >= 0.001
    )


def _is_number(cell: str) -> bool:
    return cell[:1].isdigit()


def _as_html(table: Table) -> str:
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in table.header)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    inside = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return (
        f"<h2>{html.escape(table.title)}</h2><p>{html.escape(table.note)}</p>"
        f'<div class="scroll"><table>{inside}</table></div>'
    )


def _cell(text: str) -> str:
    kind = ' class="number"' if _is_number(text) else ""
    return f"<td{kind}>{html.escape(text)}</td>"


def _text(text: str) -> str:
    cut = text[:_LONGEST] + "…" * (len(text) > _LONGEST)
    return f'<td dir="auto">{html.escape(cut)}</td>'


def _details(title: str, rows: Iterable[str]) -> str:
    """A table that a user opens; "" without rows."""
    inside = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f'<div class="scroll"><table>{inside}</table></div>'
    return f"<details><summary>{html.escape(title)}</summary>{table}</details>" if inside else ""


def _example(example: Example) -> str:
    other = f", as {example.other}" if example.other else ""
    place = f"line {example.line:,} of {example.corpus}{other}"
    return f"<td>{html.escape(place)}</td>{''.join(map(_text, example.texts))}"


def _examples_of_rules(report: CorpusReport) -> str:
    findings = {**report.findings, **{f"near {side}s": x for side, x in report.near.items()}}
    findings |= {REPEATED: report.repeated} if report.repeated else {}
    parts = [
        _details(
            f"{name}: {finding.count:,} pair{'s' * (finding.count != 1)}",
            map(_example, finding.examples),
        )
        for name, finding in findings.items()
    ]
    return f"<h3>Examples of {html.escape(report.name)}</h3>{''.join(parts)}" if any(parts) else ""


def _examples_of_overlap(overlap: Overlap) -> str:
    named = {**overlap.exact, **{f"near {side}": part for side, part in overlap.near.items()}}
    return "".join(
        _details(
            f"{overlap.held_out} lines in {overlap.split}, {name}: {part.count:,}",
            map(_example, part.examples),
        )
        for name, part in named.items()
    )


def _charts(report: CorpusReport) -> str:
    figures = [
        figure
        for name, side in zip(SIDES, report.sides, strict=True)
        for figure in (_lengths(name, side), _growth(name, side))
    ]
    return f'<h3>{html.escape(report.name)}</h3><div class="charts">{"".join(figures)}</div>'


def _lengths(name: str, side: SideCounts) -> str:
    longest = max(side.length(0.99), 1)
    width = -(-(longest + 1) // _BARS)  # words that share a bar
    counts = Counter[int]()
    for length, count in sorted(side.lengths.items()):
        if length <= longest:
            counts[length // width * width] += count
    title = f"{name}: texts by number of words, up to 99 %"
    return _figure(title, charts.histogram(counts, width, "words"))


def _growth(name: str, side: SideCounts) -> str:
    if len(side.growth) < 2:
        return ""
    title = f"{name}: distinct words by number of words"
    return _figure(title, charts.curve(side.growth, "words"))


def _figure(title: str, figure: "Figure") -> str:
    label = html.escape(title)
    image = base64.b64encode(charts.image_of(figure, ".svg")).decode()
    source = f"data:image/svg+xml;base64,{image}"
    return f'<figure><figcaption>{label}</figcaption><img alt="{label}" src="{source}"></figure>'


def _sample(report: CorpusReport) -> str:
    pairs = report.sample[:_SAMPLED]
    title = f"{report.name}: {len(pairs)} pairs drawn at random"
    return _details(title, ("".join(map(_text, pair)) for pair in pairs))
