"""The formats of exports by name: the options that each takes, and what writes and checks it."""

import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from tf_transformer.config import DType, Quantization
from tf_transformer.errors import InputError
from tf_transformer.run.run import Run

if TYPE_CHECKING:
    from tf_transformer.inference.translator import Translator

Compiled = bool | Literal["auto"]
FLOAT32: tuple[Literal["float32"]] = ("float32",)


@dataclass(frozen=True)
class Options:
    """Options of an export; the options of `commands.export.main` with the same names."""

    dtype: DType = "float32"
    quantization: Quantization = "float32"
    jit_compile: Compiled = False


@dataclass(frozen=True)
class Format:
    """A format of exports.

    Attributes:
        write: writes a run into a folder, checks it, and returns a summary.
        dtypes: values of `dtype` that it takes.
        quantizations: values of `quantization` that it takes.
        is_graph: whether it holds the graph of any predictor, also of an ensemble, which XLA can
            compile.
    """

    write: Callable[[Run, pathlib.Path, Options], str]
    dtypes: tuple[DType, ...] = FLOAT32
    quantizations: tuple[Quantization, ...] = FLOAT32
    is_graph: bool = False


def require_supported(name: str, options: Options) -> None:
    """Raises an `InputError` for an option that the format does not take."""
    form = FORMATS[name]
    if options.jit_compile and not form.is_graph:
        raise InputError(f"--jit_compile needs --format {_with(lambda x: x.is_graph)}.")
    if options.jit_compile and options.dtype == "int8":
        raise InputError("--dtype int8 has no --jit_compile. Leave one of them out.")
    if options.dtype not in form.dtypes:
        usual = _usual("dtype", form.dtypes, "quantization", form.quantizations)
        others = _with(lambda x: options.dtype in x.dtypes)
        raise InputError(
            f"--format {name} has no --dtype {options.dtype}. {usual}, or give --format {others}."
        )
    if options.quantization not in form.quantizations:
        usual = _usual("quantization", form.quantizations, "dtype", form.dtypes)
        others = _with(lambda x: options.quantization in x.quantizations)
        raise InputError(
            f"--format {name} has no --quantization {options.quantization}. {usual}, or give "
            f"--format {others}."
        )


def _usual(option: str, values: Sequence[str], other: str, of_other: Sequence[str]) -> str:
    """What to give in place of a value that an option of a format lacks."""
    first = f"Give --{option} {' or '.join(values)}" if len(values) > 1 else f"Leave out --{option}"
    return f"{first}, or give --{other}" if len(of_other) > 1 else first


def require_one_run(name: str, options: Options) -> None:
    """Raises an `InputError` for what an ensemble of runs cannot be exported to."""
    if options.jit_compile or not FORMATS[name].is_graph:
        raise InputError(
            f"an ensemble is exported with --format {_with(lambda x: x.is_graph)} and without "
            "--jit_compile. Leave them out, or give one --run_dir."
        )


def _with(has: Callable[[Format], bool]) -> str:
    return " or ".join(name for name, form in FORMATS.items() if has(form))


def _saved_model(run: Run, folder: pathlib.Path, options: Options) -> str:
    from tf_transformer.export import to_saved_model

    return to_saved_model.write(run, folder, options.jit_compile, options.dtype)


def _ctranslate2(run: Run, folder: pathlib.Path, options: Options) -> str:
    from tf_transformer.export import check_ctranslate2, to_ctranslate2

    return _standalone(run, folder, options, "ctranslate2", to_ctranslate2, check_ctranslate2)


def _litert(run: Run, folder: pathlib.Path, options: Options) -> str:
    from tf_transformer.export import check_litert, to_litert

    return _standalone(run, folder, options, "litert", to_litert, check_litert)


def _onnx(run: Run, folder: pathlib.Path, options: Options) -> str:
    from tf_transformer.export import check_onnx, to_onnx

    return _standalone(run, folder, options, "onnx", to_onnx, check_onnx)


def _standalone(
    run: Run, folder: pathlib.Path, options: Options, name: str, writer: Any, checker: Any
) -> str:
    """A folder that translates without TensorFlow, by the modules that write and check it."""
    from tf_transformer.export import check_standalone

    writer.require_package()
    translator, functions = translator_of(run, name), (writer.write, checker.check)
    return check_standalone.write_checked(run, translator, folder, options.quantization, *functions)


def _run(run: Run, folder: pathlib.Path, options: Options) -> str:
    from tf_transformer.export import to_run

    return to_run.write(run, folder, options.dtype)


def _marian(run: Run, folder: pathlib.Path, options: Options) -> str:
    from tf_transformer.export import to_marian

    return to_marian.write(translator_of(run, "marian"), folder)


def _marian_npz(run: Run, folder: pathlib.Path, options: Options) -> str:
    from tf_transformer.export import to_marian_npz

    return to_marian_npz.write(translator_of(run, "marian_npz"), folder)


def translator_of(run: Run, format: str) -> "Translator":
    """The translator of a run, for formats that hold nothing else."""
    from tf_transformer import tasks
    from tf_transformer.inference.translator import Translator

    translator = tasks.load_predictor(run)
    if not isinstance(translator, Translator):
        raise InputError(
            f"--format {format} needs a run whose task predicts with a Translator, but "
            f"{run.folder.path} predicts with a {type(translator).__name__}. Use --format "
            "saved_model."
        )
    return translator


FORMATS = {
    "saved_model": Format(_saved_model, dtypes=get_args(DType), is_graph=True),
    "ctranslate2": Format(_ctranslate2, quantizations=get_args(Quantization)),
    "litert": Format(_litert, quantizations=("float32", "float16", "int8")),
    "onnx": Format(_onnx, quantizations=("float32", "int8")),
    "run": Format(_run, dtypes=("float32", "bfloat16")),
    "marian": Format(_marian),
    "marian_npz": Format(_marian_npz),
}
