"""The structure of the tree: direction of imports, Keras-only code, files that documents name."""

import ast
import graphlib
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "tf_transformer"
PATTERNS = ("*.md", "docs/**/*.md", "benchmarks/*.md", "research/*.md", "research/docs/*.md")
DOCUMENTS = [page for pattern in PATTERNS for page in ROOT.glob(pattern)]

# ARCHITECTURE.md draws these levels: a module imports modules of its own part and of lower levels.
LEVELS = [
    {"errors", "text.special_ids"},
    {"machine", "registry"},
    {"files"},
    {"kernels"},
    {"text", "config"},
    {"layers"},
    {"decoding"},
    {"models", "losses", "data", "parsing", "documents"},
    {"run"},
    {"inference"},
    {"visualization"},
    {"tasks"},
    {"imports"},
    {"training", "export", "serving"},
    {"demo"},
    {"commands"},
]
KERAS_ONLY = {
    *("errors", "registry", "config"),
    *("machine.thresholds", "text.special_ids", "text.sequences"),
    *("kernels", "layers", "models", "decoding", "losses"),
    *("training.metrics", "training.schedule"),
}
# Run by path in fresh processes, and the packages that they may not import.
PROGRAMS = {
    "export/run_in_session.py": {"tf_transformer", "keras"},
}


def modules():
    return sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def dotted(path: pathlib.Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def imports(path: pathlib.Path) -> set[str]:
    """All imported names, also those imported inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def candidates(name: str) -> tuple[str, str]:
    """The modules that an imported name may stand for: it is one, or is in one."""
    return name, name.rpartition(".")[0]


def part_of(name: str) -> str:
    """The part of the tree that a dotted name belongs to: the longest that `LEVELS` lists."""
    parts = sorted(set().union(*LEVELS), key=len, reverse=True)
    return next(part for part in parts if name == part or name.startswith(part + "."))


def level(part: str) -> int:
    return next(i for i, parts in enumerate(LEVELS) if part in parts)


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_imports_flow_one_way(path):
    part = part_of(dotted(path))
    for name in imports(path):
        if name.startswith("tf_transformer."):
            other = part_of(name.removeprefix("tf_transformer."))
            assert other == part or level(other) < level(part), f"{part} imports {other}"


def test_no_modules_import_each_other():
    """Not through others, either; imports for types and inside of functions count."""
    names = {dotted(path) for path in modules()}
    graph = {
        dotted(path): {
            module
            for name in imports(path)
            for module in candidates(name.removeprefix("tf_transformer."))
            if module in names and module != dotted(path)
        }
        for path in modules()
    }
    graphlib.TopologicalSorter(graph).prepare()  # raises a CycleError that names the circle


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_keras_only_code_imports_no_tensorflow(path):
    name = dotted(path)
    if name in KERAS_ONLY or name.split(".")[0] in KERAS_ONLY:
        assert not {n for n in imports(path) if n.split(".")[0].startswith("tensorflow")}


@pytest.mark.parametrize("path", modules(), ids=dotted)
def test_inference_imports_no_training_code(path):
    name = dotted(path)
    if not name.startswith("training") and name != "commands.train":
        assert not {n for n in imports(path) if n.startswith("tf_transformer.training")}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["decoding", "kernels", "layers", "models", "inference.search", "export.check"]
)
def test_a_part_can_be_imported_first(name):
    subprocess.run([sys.executable, "-c", f"import tf_transformer.{name}"], cwd=ROOT, check=True)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run_by_path_import_nothing_of_this_project(program):
    found = {name.split(".")[0] for name in imports(PACKAGE / program)}
    assert not found & PROGRAMS[program]


@pytest.mark.parametrize("name", ["train.py", "evaluate.py", "translate.py", "export/__main__.py"])
def test_top_level_commands_call_the_package(name):
    path = ROOT / name
    assert {n.rpartition(".")[0] for n in imports(path)} == {"tf_transformer.commands"}
    assert len(path.read_text("utf-8").splitlines()) < 10


def test_only_programs_read_the_command_line():
    for path in modules():
        is_program = dotted(path).startswith(("commands", "export.run_in"))
        assert is_program or "sys.argv" not in path.read_text("utf-8"), path


def test_the_package_does_not_grow_without_a_reason():
    """A change that adds lines removes others, or raises this number and says why."""
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in modules())
    features = {
        "int8: a second form of every product with a large matrix": 411,
        "the record of imported traits, which short names of options still reach": 77,
        "fields of the demo page for the inputs of each text": 84,
        "SSRU decoders; pre-norm and binary files of Marian, and Firefox's folders": 390,
        "lean imports and SentencePiece's operations alone, for a start in half the time": 92,
        "distillation: synthetic corpora, starts with layers of another depth, the comparison": 601,
        "long text: the ends of sentences in four languages, their joined results and links": 490,
        "kept spans: their rules, the repair of translations by attention, emoji as symbols": 1166,
        "APIs of other services: their server, limits, keys, metrics and glossaries": 1170,
        "documents: a reader and a writer for each of ten formats; uploads of the demo page": 1810,
        "probabilities of words, notices of faults and of unseen words, a second search": 984,
        "terms: where they apply, and a search that puts them in": 790,
        "terms that a model reads: words of its text that translate each other, their marks": 315,
        "half the memory and start: parts of graphs that few texts need, a gather kernel": 215,
        "several corpora: weights, tags, directions, stages, exposure and scores of each": 1126,
        "inspection of corpora: rules, near texts, overlap, a page; what a run has seen": 1657,
        "graphs of exports with shared constants, which start sooner": 82,
        "a table of the formats of exports, so that a new one is an entry and not a branch": 116,
        "links of words: by eflomal or attention, and a loss that teaches them": 538,
        "chains of commands in one file, which continue where they stopped": 428,
        "preparation on Apache Beam, shards of workers, jobs of SLURM": 793,
        "filters of OpusFilter, as rules for pairs": 165,
        "sets of keys, pairs of earlier corpora, keys of prepared text, blocks on Beam": 100,
        "exports for CTranslate2 and Marian of models that need a language for each text": 20,
        "LiteRT: one file with the search, its program, its check; texts without TensorFlow": 830,
        "corpora in PO, XLIFF, Parquet, archives of OPUS and test sets of WMT": 739,
        "an export for ONNX runtimes: its graph, weights in int8, its program and its check": 628,
        "kept spans in folders for LiteRT and ONNX: the rules and the repair in plain Python": 735,
    }
    assert lines <= 31_002 + sum(features.values())


# The doors for a user's path of a run. Elsewhere a run, or its folder, is passed on.
DOORS = {
    "commands.command_line": {"RunFolder"},
    "commands.plot": {"RunFolder"},
    "commands.train": {"Run.at"},
    "commands.distill": {"Run.load", "RunFolder"},  # the teacher, and the student
    "commands.import_model": {"RunFolder"},  # the new folder
    **{f"commands.{name}": {"Run.load"} for name in ("evaluate", "translate", "export", "demo")},
    **{f"commands.{name}": {"Run.load"} for name in ("align", "synthesize", "serve")},
    **{f"commands.{name}": {"Run.load"} for name in ("translate_document", "inspect_corpora")},
    "commands.pipeline_step": {"Run.load"},
    "inference.predictor": {"Run.load"},
    "run.run": {"RunFolder", "Run.load"},
    "export.to_run": {"RunFolder"},  # the new folder
    # Programs that measure in a process of their own.
    **{name: {"Run.load"} for name in ("training.autotuning", "export.compilation")},
    "export.measure": {"Run.load"},
}


def test_a_run_is_made_from_its_path_at_the_doors_only():
    made = {}
    for path in modules():
        calls = {
            ast.unparse(argument)
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call)
            for argument in (node.func, *node.args)  # `map` calls its argument
        }
        if makers := calls & {"RunFolder", "Run", "Run.load", "Run.at"}:
            made[dotted(path)] = makers
    assert made == DOORS


# Files that read other things than a user's text: their own JSON, YAML, models and pages.
READS_NO_TEXT = {
    *("text/tokenizer.py", "text/own_tokenizer.py", "run/folder.py", "run/run.py"),
    *("training/autotuning.py", "export/measure.py", "data/synthetic_corpus.py"),
    "data/training_keys.py",
    *("export/compilation.py", "export/warm_up.py", "export/manifest.py"),
    "inference/saved_graph.py",
    *("data/prepared.py", "data/prepared_shards.py"),
    "export/onnx_weights.py",  # it writes
    *("export/server_ops.py", "data/store.py", "inference/saved_translator.py"),
    *("visualization/attention_page.py", "visualization/corpus_page.py", "demo/app.py"),
    *("imports/imported.py", "imports/options.py", "imports/weights.py"),
    "imports/ctranslate2_file.py",
    *("imports/marian_npz.py", "imports/marian_bin.py", "imports/marian_vocabulary_file.py"),
    *("imports/opennmt_tf_folder.py", "imports/fairseq_folder.py"),
    *("training/reports.py", "training/interruption.py"),
    *(
        "commands/standard_streams.py",
        "commands/command_line.py",
        "commands/option_errors.py",
        *("machine/limits.py", "machine/imports.py"),
        "files/locks.py",
    ),
    *("files/outputs.py", "files/start_record.py", "files/writing.py"),
    "setup.py",  # it reads its own files
}
READER = {"files/text_lines.py", "files/reading.py"}
# Names that stand elsewhere: a file that is given to the reader, or another method `open`.
ALLOWED = {
    "files/streaming.py": {"stdin", "open"},  # it reads its own partial outputs, too
    "export/run_in_session.py": {"stdin"},
    "export/run_in_onnx.py": {"open"},
    "export/standalone_model.py": {"stdin", "open", "read_text"},
    "export/litert_file.py": {"stdin"},  # the work that its caller gives
    "export/serving/client_rest.py": {"stdin"},
    "export/check_ctranslate2.py": {"read_text"},  # the processor's instructions
    "export/check.py": {"stdin"},  # of the process that it starts
    "export/serving/client_grpc.py": {"stdin"},
    "examples/keras_pipeline.py": {"stdin"},
    "examples/beam_translate.py": {"open"},
    "commands/demo.py": {"open"},
    "data/readers/moses_zip.py": {"open", "lzma"},  # members, which it gives to the reader
    "data/readers/tfds.py": {"open"},  # it hashes files of a TFDS corpus
    "parsing/grammar.py": {"open"},
    "parsing/restore.py": {"open"},
}
READING = {"open", "read_text", "read_bytes", "stdin", "loadtxt", "genfromtxt", "fromfile"}
READING_MODULES = {"gzip", "bz2", "lzma", "fileinput", "zstandard"}


def ways_to_read(path: pathlib.Path) -> set[str]:
    """The names in a file that may read a text."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names.add(node.func.id)
    return (names & READING) | ({n.split(".")[0] for n in imports(path)} & READING_MODULES)


def test_text_is_read_by_one_reader():
    programs = [
        path for folder in ("export", "examples") for path in ROOT.glob(f"{folder}/**/*.py")
    ]
    found = {}
    for path in [*PACKAGE.rglob("*.py"), *ROOT.glob("*.py"), *programs]:
        name = str(path.relative_to(PACKAGE if path.is_relative_to(PACKAGE) else ROOT))
        if name not in READS_NO_TEXT | READER:
            found[name] = ways_to_read(path) - ALLOWED.get(name, set())
    assert {name: ways for name, ways in found.items() if ways} == {}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_documents_name_exist(document):
    folders = "tf_transformer|configs|tests|export|examples|benchmarks|docs|results|research"
    named = re.findall(rf"`((?:{folders})/[\w./-]+)", document.read_text("utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []
