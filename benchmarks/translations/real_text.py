"""Compares the speed of translation of a text with CTranslate2 and Hugging Face.

    python -m benchmarks.translations.real_text --run_dir runs/multi30k --source test.en \
        --reference test.de --output benchmarks/results/real_text.json

The model is a trained run. The sentences have natural lengths, so batches, padding and the ends of
searches matter. Each system has its own process with two cores, in its best setting. This project
and CTranslate2 translate two batches in parallel with one thread each. Hugging Face's `generate`
has batches of similar length. Each process stays until the end. The systems translate the text in
turn, because the speed of a machine changes within minutes.

With `--student`, a second run is measured as a SavedModel with the search of its configuration.
"""

import contextlib
import functools
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks.harness import results
from benchmarks.harness.options import at_least_one, chosen
from benchmarks.harness.processes import Process, ProcessError, call
from benchmarks.harness.systems import not_installed
from benchmarks.harness.tables import of_rows
from benchmarks.harness.usage import peak_megabytes, usage_of
from benchmarks.translations.compare import bleu, first_lines
from tf_transformer.commands import command_line

PACKAGES = ("tensorflow", "ctranslate2", "ai-edge-litert", "transformers", "torch", "sacrebleu")
_MODULE = "benchmarks.translations.real_text"
THREADS = 2
BATCH = 128  # lines
BATCH_TOKENS = 2048  # of CTranslate2
ALONE = 100  # sentences that a pass also translates one after the other
WHOLE = {"split": "none", "keep": ()}  # CTranslate2 has neither option
LITERT = {"litert": "float32", "litert_int8": "int8"}  # systems, and the dtypes of their weights
LONGEST = 128  # tokens of a source in LiteRT; others have the limit of the run
STUDENT = ("student", "student_xla")  # systems, and the folders of its exports
Translate = Callable[[Sequence[str]], list[str]]


def main(
    run_dir: str,
    source: str,
    reference: str,
    systems: str = "",
    lines: int = 10**9,
    copies: int = 3,
    beam_size: int = 4,
    rounds: int = 5,
    student: str = "",
    output: str = "",
) -> None:
    """Prints sentences per second, seconds of the first pass with start-up, memory and BLEU.

    Args:
        run_dir: a trained run of translation.
        source: file of sentences.
        reference: file of their translations.
        systems: systems to measure, with commas between them; empty: all.
        lines: number of lines from the start of the files.
        copies: number of copies of the text.
        beam_size: beam size of all searches.
        rounds: timed passes of each system after its first pass.
        student: a run that is compared with this one, such as a small model of its translations.
        output: result file to write, like benchmarks/results/real_text.json.
    """
    at_least_one(lines=lines, copies=copies, beam_size=beam_size, rounds=rounds)
    selected = chosen(systems, SYSTEMS) if systems else list(SYSTEMS)
    if not student:
        selected = [name for name in selected if name not in STUDENT]
    run_dir, source = os.path.abspath(run_dir), os.path.abspath(source)  # for other processes
    references = first_lines(reference, lines)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as processes:
        arguments = {"run_dir": run_dir, "folder": folder, "beam_size": beam_size}
        call(f"{_MODULE}:export", **arguments)
        if student:
            call(f"{_MODULE}:export_student", run_dir=os.path.abspath(student), folder=folder)
        has_marian = "marian" in selected and not not_installed(["torch", "transformers"])
        if has_marian and not call(f"{_MODULE}:export_marian", **arguments):
            print("marian is left out: its layers cannot compute this model", file=sys.stderr)
            selected.remove("marian")
        if not not_installed(["ai_edge_litert"]):
            for system in LITERT.keys() & set(selected):
                call(f"{_MODULE}:export_litert", system=system, **arguments)
        arguments |= {"source": source, "lines": lines}
        started = {name: processes.enter_context(Process()) for name in selected}
        first = first_passes(started, arguments, references)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in first}
        for _ in range(rounds):
            for name, passes in found.items():
                work = arguments | {"system": name, "copies": copies}
                passes.append(started[name].call(f"{_MODULE}:timed_pass", **work))
    if not first:
        sys.exit("no system could be measured.")
    rows = compared(
        [{"system": name} | medians(passes) | first[name] for name, passes in found.items()]
    )
    print(of_rows(rows, left=1))
    summary = {"sentences": rows[0]["sentences"], "beam": beam_size}
    summary |= {"student": student} if student else {}
    results.save(output, rows, PACKAGES, summary=summary)


def first_passes(
    processes: Mapping[str, Process], arguments: dict[str, Any], references: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Seconds of the first pass and BLEU of each system; names those that fail."""
    found = {}
    for name, process in processes.items():
        try:
            first = process.call(f"{_MODULE}:first_pass", system=name, **arguments)
        except ProcessError as error:
            print(f"{name} failed: {error}", file=sys.stderr)
            continue
        found[name] = first | {"bleu": bleu(first.pop("translations"), references)}
    return found


def medians(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of each number over all rounds."""
    return {field: statistics.median(numbers[field] for numbers in rounds) for field in rounds[0]}


def compared(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with rounded numbers, and with the ratio to CTranslate2's speed."""
    speeds = {row["system"]: row["sentences_per_second"] for row in rows}
    result = []
    for row in rows:
        numbers = {name: round(v, 2) for name, v in row.items() if name != "system"}
        if other := speeds.get("ctranslate2"):
            numbers["ratio_to_ctranslate2"] = round(row["sentences_per_second"] / other, 2)
        result.append({"system": row["system"]} | numbers)
    return result


def export(run_dir: str, folder: str, beam_size: int) -> None:
    """Writes the SavedModels and the CTranslate2 model of a run."""
    from tf_transformer.export import to_ctranslate2
    from tf_transformer.inference.translator import Translator

    translator = Translator.from_run(run_dir, beam_size=beam_size, batch_size=BATCH, **WHOLE)
    for jit_compile in (False, True):
        translator.save(f"{folder}/saved_model{'_xla' * jit_compile}", jit_compile)
    to_ctranslate2.write(translator, pathlib.Path(folder, "ctranslate2"), "float32")


def export_student(run_dir: str, folder: str) -> None:
    """Writes the SavedModels of a student, with its own search."""
    from tf_transformer.inference.translator import Translator

    translator = Translator.from_run(run_dir, batch_size=BATCH)
    for form in STUDENT:
        translator.save(f"{folder}/{form}", jit_compile=form == "student_xla")


def export_litert(run_dir: str, folder: str, beam_size: int, system: str) -> None:
    """Writes the folder of a run for LiteRT."""
    from tf_transformer.export import to_litert
    from tf_transformer.inference.translator import Translator

    options = {"beam_size": beam_size, "max_source_length": LONGEST, **WHOLE}
    translator = Translator.from_run(run_dir, **options)
    to_litert.write(translator, pathlib.Path(folder, system), LITERT[system])


def export_marian(run_dir: str, folder: str, beam_size: int) -> bool:
    """Writes the weights of a run for Hugging Face; False: its layers cannot compute the model.

    Call it in a new process, which imports torch first. If an export comes before the import, torch
    2.14 ends with a segmentation fault.
    """
    from benchmarks.translations import marian_run
    from tf_transformer.inference.translator import Translator

    translator = Translator.from_run(run_dir, beam_size=beam_size, batch_size=BATCH, **WHOLE)
    if not marian_run.is_supported(translator):
        return False
    marian_run.save(translator, f"{folder}/marian")
    return True


def first_pass(
    system: str, run_dir: str, folder: str, beam_size: int, source: str, lines: int
) -> dict[str, Any]:
    """Seconds of start-up with the first pass over the text, and its translations."""
    text = first_lines(source, lines)
    start = time.perf_counter()
    translations = _started(system, run_dir, folder, beam_size)(text)
    return {
        "first_pass_seconds": time.perf_counter() - start,
        "translations": translations,
    }


def timed_pass(
    system: str, run_dir: str, folder: str, beam_size: int, source: str, lines: int, copies: int
) -> dict[str, Any]:
    """The numbers of a pass. Call it in the process of the first pass."""
    text = first_lines(source, lines) * copies
    translate = _started(system, run_dir, folder, beam_size)
    _, usage = usage_of(lambda: translate(text))
    _, alone = usage_of(lambda: [translate([line]) for line in text[: _alone(system)]])
    return {
        "sentences": len(text),
        "sentences_per_second": len(text) / usage.seconds,
        "alone_per_second": min(_alone(system), len(text)) / alone.seconds,
        "peak_mb": peak_megabytes(),
        "minor_faults": usage.minor_faults,
        "system_seconds": usage.system_seconds,
    }


def _alone(system: str) -> int:
    """The number of sentences that a system translates one after the other."""
    return 1 if system == "translate.py" else ALONE  # which starts a process for each


@functools.cache
def _started(system: str, run_dir: str, folder: str, beam_size: int) -> Translate:
    return SYSTEMS[system](run_dir, folder, beam_size)


def _command(run_dir: str, folder: str, beam_size: int) -> Translate:
    """`translate.py`, started anew for each text."""
    program = [sys.executable, "-m", "tf_transformer.commands.main", "translate"]
    options = ["--run_dir", run_dir, "--beam_size", str(beam_size)]
    options += ["--batch_size", str(BATCH), "--split", "none", "--keep", "[]"]

    def translate(lines: Sequence[str]) -> list[str]:
        text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run([*program, *options], input=text, stdout=-1, text=True, check=True)
        return done.stdout.splitlines()

    return translate


def _translator(run_dir: str, folder: str, beam_size: int) -> Translate:
    """`Translator` in Python."""
    from tf_transformer.inference.translator import Translator
    from tf_transformer.machine.threads import use_one_thread_per_batch

    use_one_thread_per_batch(THREADS)
    translator = Translator.from_run(run_dir, beam_size=beam_size, batch_size=BATCH, **WHOLE)
    return lambda lines: [prediction.text for prediction in translator(lines)]


def _saved_model(run_dir: str, folder: str, beam_size: int, form: str = "saved_model") -> Translate:
    """The export in a session; two threads of a client send batches of lines of similar length."""
    os.environ |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": str(THREADS)}

    from tf_transformer.export.run_in_session import SavedModel

    model = SavedModel(f"{folder}/{form}")

    def run(batch: Sequence[str]) -> list[bytes]:
        text = [line.encode() for line in batch]
        return list(model("serving_default", {"text": text})["translation"])

    def translate(lines: Sequence[str]) -> list[str]:
        order = sorted(range(len(lines)), key=lambda i: -len(lines[i]))
        batches = [order[i : i + BATCH] for i in range(0, len(order), BATCH)]
        result = [""] * len(lines)
        with ThreadPoolExecutor(THREADS) as pool:
            found = pool.map(run, [[lines[i] for i in batch] for batch in batches])
            for batch, texts in zip(batches, found, strict=True):
                for i, text in zip(batch, texts, strict=True):
                    result[i] = text.decode()
        return result

    return translate


def _compiled_saved_model(run_dir: str, folder: str, beam_size: int) -> Translate:
    """The export that XLA compiles."""
    return _saved_model(run_dir, folder, beam_size, "saved_model_xla")


def _student(run_dir: str, folder: str, beam_size: int) -> Translate:
    """The export of the student."""
    return _saved_model(run_dir, folder, beam_size, "student")


def _compiled_student(run_dir: str, folder: str, beam_size: int) -> Translate:
    """The export of the student that XLA compiles."""
    return _saved_model(run_dir, folder, beam_size, "student_xla")


def _two_workers(path: str, compute_type: str = "float32") -> Any:
    """A CTranslate2 model that translates two batches at a time, one thread each."""
    from tf_transformer.export.run_in_ctranslate2 import Model, load

    model = Model(path)
    threads = {"inter_threads": THREADS, "intra_threads": 1}
    model.translator = load(path, "cpu", compute_type=compute_type, **threads)
    return model


def _ctranslate2(
    run_dir: str, folder: str, beam_size: int, compute_type: str = "float32"
) -> Translate:
    """`translate_batch` of all lines with two workers, and SentencePiece before and after."""
    model = _two_workers(f"{folder}/ctranslate2", compute_type)
    alpha = model.search["length_penalty"]

    def translate(lines: Sequence[str]) -> list[str]:
        sources = [model.source.divided(line) for line in lines]
        found = model.translator.translate_batch(
            sources,
            beam_size=beam_size,
            length_penalty=alpha,
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
        )
        return [model.text(result.hypotheses[0]) for result in found]

    return translate


def _ctranslate2_int8(run_dir: str, folder: str, beam_size: int) -> Translate:
    """The same, quantized to int8."""
    return _ctranslate2(run_dir, folder, beam_size, "int8")


def _ctranslate2_file(run_dir: str, folder: str, beam_size: int) -> Translate:
    """`translate_file` with two workers; CTranslate2 reads the text and forms the batches."""
    model = _two_workers(f"{folder}/ctranslate2")

    def translate(lines: Sequence[str]) -> list[str]:
        with tempfile.TemporaryDirectory() as files:
            source, target = pathlib.Path(files, "source"), pathlib.Path(files, "target")
            source.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            model.translator.translate_file(
                *(str(source), str(target)),
                max_batch_size=BATCH_TOKENS,
                batch_type="tokens",
                beam_size=beam_size,
                length_penalty=model.search["length_penalty"],
                source_tokenize_fn=model.source.divided,
                target_detokenize_fn=model.text,
            )
            return target.read_text("utf-8").splitlines()

    return translate


def _litert(run_dir: str, folder: str, beam_size: int, system: str = "litert") -> Translate:
    """LiteRT, one sentence after another, each on two threads."""
    from tf_transformer.export.run_in_litert import Model

    model = Model(f"{folder}/{system}", THREADS)
    return lambda lines: [translation.text for translation in model(lines)]


def _litert_int8(run_dir: str, folder: str, beam_size: int) -> Translate:
    """The same, with int8 weights."""
    return _litert(run_dir, folder, beam_size, "litert_int8")


def _marian(run_dir: str, folder: str, beam_size: int) -> Translate:
    """Hugging Face's MarianMTModel with the weights of a post-norm run."""
    import torch

    from benchmarks.translations.marian_run import translate_with
    from tf_transformer.export.run_in_ctranslate2 import Model

    torch.set_num_threads(THREADS)
    model = Model(f"{folder}/ctranslate2")
    return translate_with(f"{folder}/marian", model.source.processor, model.search, BATCH)


SYSTEMS: dict[str, Callable[[str, str, int], Translate]] = {
    "translate.py": _command,
    "translator": _translator,
    "savedmodel": _saved_model,
    "savedmodel_xla": _compiled_saved_model,
    "ctranslate2": _ctranslate2,
    "ctranslate2_int8": _ctranslate2_int8,
    "ctranslate2_file": _ctranslate2_file,
    "litert": _litert,
    "litert_int8": _litert_int8,
    "marian": _marian,
    "student": _student,
    "student_xla": _compiled_student,
}


if __name__ == "__main__":
    command_line.run(main)
