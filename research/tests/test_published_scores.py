"""research/published_scores: its three sets of outputs, and its comparison."""

import json

from research import published_scores

LINE = "the old man and the sea"


def test_scores_are_compared_with_the_published_ones(tmp_path, capsys):
    """All outputs equal their references, so 100 is reproduced and 99.8 is not."""
    sets = {
        "wmt17_en_de": (
            "file\tmteval_v13a_bleu\tmteval_v14_intl_bleu\nout\t100.00\t\nout\t99.8\t100.0\n",
            {"out": LINE, "ref.de": LINE},
        ),
        "tf_nmt_newstest2013_de_en": (
            "hypothesis\treference\tsubword\texpected_bleu\nout\tbpe\tbpe\t100\nout\tspm\tspm\t99.9999\n",
            {
                "out": LINE,
                "bpe": "the old m@@ an and the sea",
                "spm": "▁the ▁old ▁m an ▁and ▁the ▁sea",
            },
        ),
        "multeval_test2010_en": (
            "system\truns\tBLEU_mean\na\topt0 opt1\t100.0\n",
            {"hyps.lc.tok.en.a.opt0": LINE, "hyps.lc.tok.en.a.opt1": LINE}
            | {"refs.test2010.lc.tok.en.0": LINE},
        ),
    }
    for name, (table, files) in sets.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "scores.tsv").write_text(table)
        for file, text in files.items():
            (tmp_path / name / file).write_text(f"{text}\n")
    published_scores.main(str(tmp_path), str(tmp_path / "found.json"))
    rows = json.loads((tmp_path / "found.json").read_text())["measurements"]
    assert [row["reproduced"] for row in rows] == [True, False, True, True, True, True]
    assert "5 of 6 published scores are reproduced." in capsys.readouterr().out
