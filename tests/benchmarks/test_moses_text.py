"""benchmarks/translations/moses_text: text as the scripts of Moses prepare it."""

import pytest

from benchmarks.translations import moses_text
from tf_transformer.errors import InputError


def test_each_file_of_a_language_is_prepared(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.de").write_text("Ein „Hut“, z.B. grün-weiß…\n\nDen's nicht gibt!\n")
    moses_text.main(str(tmp_path / "raw"), str(tmp_path / "new"), "de")
    assert (tmp_path / "new" / "a.de").read_text().split("\n") == [
        "ein &quot; hut &quot; , z.b. grün-weiß ...",
        "",
        "den &apos; s nicht gibt !",
        "",
    ]


def test_a_language_without_files_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"no file with the ending \.fr"):
        moses_text.main(str(tmp_path), str(tmp_path / "new"), "fr")


def test_compounds_are_split_as_the_papers_score_has_them():
    prepare = moses_text.preparation("de", lowercase=False, split_compounds=True)
    assert prepare("Die U-Bahn-Station - neu.") == (
        "Die U ##AT##-##AT## Bahn ##AT##-##AT## Station - neu ."
    )
