"""Abbreviations and first words of sentences in some languages, for the division into sentences."""

from typing import NamedTuple


class Abbreviations(NamedTuple):
    """What decides whether a full stop ends a sentence in a language; words without the stop.

    Each field is a text with a space between words. A word also stands for its form with a capital.
    """

    titles: str = ""  # before a name or another word: never the end of a sentence
    before_numbers: str = ""  # not the end of a sentence if a number follows
    # The end of a sentence only before one of `starters`. Initials such as J. and U.S. are of
    # this kind in each language.
    others: str = ""
    starters: str = ""  # common first words of sentences that rarely follow an abbreviation
    ordinals: bool = False  # whether a number with a full stop is an ordinal, as in 5. Mai
    marks: str = ""  # characters that end a sentence in this language alone


BY_LANGUAGE = {
    "en": Abbreviations(
        "mr mrs ms mx dr prof st messrs rev hon gen col capt lt sgt cpl maj cmdr adm gov sen rep "
        "pres supt insp mt ft vs e.g i.e cf viz approx dept univ",
        "no nos p pp fig figs vol vols ch sec art par eq ref jan feb mar apr jun jul aug sep sept "
        "oct nov dec",
        "inc ltd co corp bros jr sr esq ave blvd rd",
        "the a an he she it we they you i this that these those there in on at but and if when "
        "what why how who his her its our their my your as for with after before however so no "
        "yes not then now",
    ),
    "de": Abbreviations(
        "hr hrn fr frl dr prof dipl ing st hl mag bzw z.b d.h u.a i.d.r vgl evtl ggf inkl zzgl "
        "bspw sog geb gest verh ca max min prot kath ehem jährl tägl mr mrs ms sgt vs",
        "nr s abs art bd kap tel abb tab jh jan feb apr jun jul aug sept okt nov dez",
        "str co ges verl jr sen",
        "der die das ein eine er sie es wir ihr ich du man dies diese dieser dieses in im am an "
        "auf bei aber und wenn was wie wer warum wo sein seine ihre mein meine unser nach vor "
        "mit für doch so da dann nun nein ja nicht auch",
        ordinals=True,
    ),
    "fr": Abbreviations(
        "m mm mme mmes mlle mlles dr pr me mgr st ste p.ex c.-à-d cf env av boul",
        "n no p pp art vol chap fig",
        "cie éd",
        "le la les l un une des il elle ils elles on nous vous je j tu ce c cette ces dans en au "
        "à mais et si quand que qui pourquoi comment où son sa ses leur mon ma mes notre pour "
        "avec après avant non oui",
    ),
    "cs": Abbreviations(
        "p pí sl dr mudr judr phdr rndr ing mgr bc prof doc sv tzv tj např resp mj popř cca kupř "
        "gen plk kpt por",
        "č čís s str odst obr tab roč",
        "spol a.s s.r.o ml st",
        "ten ta to on ona ono my vy já ty oni tento tato v ve na ale když co jak kdo proč kde "
        "jeho její můj náš po před s pro ne ano tak pak",
        ordinals=True,
    ),
    "el": Abbreviations(
        "κ κα κκ δρ δις καθ αγ π.χ δηλ βλ",
        "αρ αριθ σελ σ τ τόμ κεφ άρθ εικ",
        "κ.λπ κλπ κ.ά κ.τ.λ μ.μ π.μ μ.χ",
        "ο η το οι τα ένας μια ένα αυτός αυτή αυτό εγώ εσύ εμείς εσείς σε στο στη στην και αν όταν "
        "τι πώς ποιος πού γιατί αλλά με για μετά πριν όχι ναι δεν τώρα τότε",
        marks=";",  # the question mark; Unicode has the same character for the semicolon
    ),
}


def _of_all(field: str) -> str:
    return " ".join(getattr(own, field) for own in BY_LANGUAGE.values())


OF_ALL = Abbreviations(
    _of_all("titles"),
    _of_all("before_numbers"),
    _of_all("others"),
    _of_all("starters"),
    ordinals=True,
)
_LONGER = {"en": "eng", "de": "deu ger", "fr": "fra fre", "cs": "ces cze", "el": "ell gre"}
BY_LANGUAGE |= {
    longer: BY_LANGUAGE[code] for code, codes in _LONGER.items() for longer in codes.split()
}
