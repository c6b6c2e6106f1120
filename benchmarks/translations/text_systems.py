"""Systems that translate a text with one run: what each reads, and how it is started.

`SYSTEMS` names them. `write` makes the folder that a system reads, and `start` gives its function.
Imports stand in functions, because a process imports the packages of one system.
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

THREADS = 2
BATCH = 128  # lines
BATCH_TOKENS = 2048  # of CTranslate2
LONGEST = 128  # tokens of a source in LiteRT; other systems have the limit of the run
WHOLE = {"split": "none", "keep": ()}  # other programs have neither option
Translate = Callable[[Sequence[str]], list[str]]


class System(NamedTuple):
    """A system.

    Attributes:
        start: gives the function that translates lines, from the run's folder, the folder that
            `write` made, and the beam size.
        write: makes the folder from a translator; None: the system reads the run.
    """

    start: Callable[[str, str, int], Translate]
    write: "Callable[[Translator, pathlib.Path], None] | None" = None


def export(system: str, run_dir: str, folder: str, **search: Any) -> None:
    """Writes what a system reads, from a run with options of its search.

    Call it in a new process, which for `marian` imports torch first. If an export comes before the
    import, torch 2.14 ends with a segmentation fault.
    """
    if system == "marian":
        import benchmarks.translations.marian_run  # noqa: F401

    from tf_transformer.inference.translator import Translator

    if write := SYSTEMS[system].write:
        write(Translator.from_run(run_dir, batch_size=BATCH, **search), pathlib.Path(folder))


def _write_saved_model(
    translator: "Translator", folder: pathlib.Path, jit_compile: bool = False, dtype: str = ""
) -> None:
    (translator.with_dtype(dtype) if dtype else translator).save(str(folder), jit_compile)


def _write_ctranslate2(
    translator: "Translator", folder: pathlib.Path, quantization: Any = "float32"
) -> None:
    from tf_transformer.export import to_ctranslate2

    to_ctranslate2.write(translator, folder, quantization)


def _write_litert(
    translator: "Translator", folder: pathlib.Path, quantization: Any = "float32"
) -> None:
    """Writes the folder for sources of at most `LONGEST` tokens."""
    from tf_transformer.export import to_litert

    search = replace(translator.config, max_source_length=LONGEST)
    to_litert.write(translator.like(translator.model, search), folder, quantization)


def _write_onnx(
    translator: "Translator", folder: pathlib.Path, quantization: Any = "float32"
) -> None:
    from tf_transformer.export import to_onnx

    to_onnx.write(translator, folder, quantization)


def _write_marian(translator: "Translator", folder: pathlib.Path) -> None:
    """Writes the weights of a run for Transformers, and the tokenizer beside them."""
    from benchmarks.translations import marian_run

    if not marian_run.is_supported(translator):
        raise SystemExit("its layers cannot compute this model")
    _write_ctranslate2(translator, folder / "ctranslate2")
    marian_run.save(translator, str(folder / "marian"))


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


def _saved_model(run_dir: str, folder: str, beam_size: int) -> Translate:
    """The export in a session; two threads of a client send batches of lines of similar length."""
    os.environ |= {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": str(THREADS)}

    from tf_transformer.export.run_in_session import SavedModel

    model = SavedModel(folder)

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


def _two_workers(path: str) -> Any:
    """A CTranslate2 model that translates two batches at a time, one thread each."""
    from tf_transformer.export.run_in_ctranslate2 import Model, load

    model = Model(path)
    threads = {"inter_threads": THREADS, "intra_threads": 1}
    model.translator = load(path, "cpu", **threads)
    return model


def _ctranslate2(run_dir: str, folder: str, beam_size: int) -> Translate:
    """`translate_batch` of all lines with two workers, and SentencePiece before and after."""
    model = _two_workers(folder)
    codec = model.texts.codec

    def translate(lines: Sequence[str]) -> list[str]:
        found = model.translator.translate_batch(
            list(map(model.pieces, codec.encode_batch("source", lines))),
            beam_size=beam_size,
            length_penalty=model.options["length_penalty"],
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
        )
        return [model.text(result.hypotheses[0]) for result in found]

    return translate


def _ctranslate2_file(run_dir: str, folder: str, beam_size: int) -> Translate:
    """`translate_file` with two workers; CTranslate2 reads the text and forms the batches."""
    model = _two_workers(folder)
    codec = model.texts.codec

    def translate(lines: Sequence[str]) -> list[str]:
        with tempfile.TemporaryDirectory() as files:
            source, target = pathlib.Path(files, "source"), pathlib.Path(files, "target")
            source.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            model.translator.translate_file(
                *(str(source), str(target)),
                max_batch_size=BATCH_TOKENS,
                batch_type="tokens",
                beam_size=beam_size,
                length_penalty=model.options["length_penalty"],
                source_tokenize_fn=lambda line: model.pieces(codec.encode("source", line)),
                target_detokenize_fn=model.text,
            )
            return target.read_text("utf-8").splitlines()

    return translate


def _litert(run_dir: str, folder: str, beam_size: int) -> Translate:
    """LiteRT, one sentence after another on one thread; two are slower for so small a model."""
    from tf_transformer.export.run_in_litert import Model

    model = Model(folder)
    return lambda lines: [translation.text for translation in model(lines)]


def _onnx(run_dir: str, folder: str, beam_size: int) -> Translate:
    """onnxruntime, a batch after another on two threads."""
    from tf_transformer.export.run_in_onnx import Model

    model = Model(folder, THREADS)
    return lambda lines: [translation.text for translation in model(lines)]


def _marian(run_dir: str, folder: str, beam_size: int) -> Translate:
    """Hugging Face's MarianMTModel with the weights of a post-norm run."""
    import torch

    from benchmarks.translations.marian_run import translate_with
    from tf_transformer.export.run_in_ctranslate2 import Model

    torch.set_num_threads(THREADS)
    model = Model(f"{folder}/ctranslate2")
    return translate_with(f"{folder}/marian", model.texts.codec, model.options, BATCH)


SYSTEMS = {
    "translate.py": System(_command),
    "translator": System(_translator),
    "savedmodel": System(_saved_model, _write_saved_model),
    "savedmodel_xla": System(_saved_model, functools.partial(_write_saved_model, jit_compile=True)),
    "savedmodel_int8": System(_saved_model, functools.partial(_write_saved_model, dtype="int8")),
    "ctranslate2": System(_ctranslate2, _write_ctranslate2),
    "ctranslate2_int8": System(
        _ctranslate2, functools.partial(_write_ctranslate2, quantization="int8")
    ),
    "ctranslate2_file": System(_ctranslate2_file, _write_ctranslate2),
    "litert": System(_litert, _write_litert),
    "litert_int8": System(_litert, functools.partial(_write_litert, quantization="int8")),
    "onnx": System(_onnx, _write_onnx),
    "onnx_int8": System(_onnx, functools.partial(_write_onnx, quantization="int8")),
    "marian": System(_marian, _write_marian),
    "student": System(_saved_model, _write_saved_model),
    "student_xla": System(_saved_model, functools.partial(_write_saved_model, jit_compile=True)),
}
