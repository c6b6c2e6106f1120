"""The systems that translate."""

from benchmarks.decode.workload import Cell
from benchmarks.harness.shapes import THREADS
from benchmarks.harness.systems import TENSORFLOW, TORCH, System

__all__ = ["REFERENCE", "SYSTEMS", "Cell"]

REFERENCE = "ctranslate2"

# By default libgomp's threads sleep between parallel regions, which makes two threads slower than
# one thread. Workers of one thread have no parallel regions, and threads that only loaded the model
# must not spin beside them.
_TWO_THREADS = {"OMP_NUM_THREADS": str(THREADS), "GOMP_SPINCOUNT": "infinity"}
_ONE_THREAD = {"OMP_NUM_THREADS": "1"}


def _saved_model(threads_per_operation: int = 0, **options) -> System:
    return System(
        "benchmarks.decode.session:task",
        ("tensorflow", "tensorflow_text"),
        TENSORFLOW,
        {"threads_per_operation": threads_per_operation},
        build="benchmarks.decode.translator:build",
        build_options=options,
    )


def _ctranslate2(environment: dict[str, str], **options) -> System:
    module = "benchmarks.decode.ctranslate2_model"
    return System(f"{module}:task", ("ctranslate2",), environment, options, build=f"{module}:build")


def _onnx(quantization: str, **options) -> System:
    module = "benchmarks.decode.onnx_model"
    return System(
        f"{module}:task",
        ("onnx", "onnxruntime", "tf2onnx", "tensorflow"),
        TENSORFLOW,
        options,
        build=f"{module}:build",
        build_options={"quantization": quantization},
    )


def _litert(weights: str) -> System:
    module = "benchmarks.decode.litert_model"
    packages = ("ai_edge_litert", "tensorflow")
    options = {"weights": weights}
    return System(
        f"{module}:task", packages, TENSORFLOW, build=f"{module}:build", build_options=options
    )


SYSTEMS = {
    "savedmodel": _saved_model(),
    "savedmodel_xla": _saved_model(jit_compile=True),
    "savedmodel_parts": _saved_model(1, parallel_batches=THREADS),
    "savedmodel_xla_parts": _saved_model(jit_compile=True, parallel_batches=THREADS),
    "savedmodel_int8": _saved_model(dtype="int8"),
    "savedmodel_int8_parts": _saved_model(1, parallel_batches=THREADS, dtype="int8"),
    "savedmodel_bfloat16": _saved_model(dtype="bfloat16"),
    "python": System(
        "benchmarks.decode.translator:task",
        ("tensorflow",),
        TENSORFLOW,
        build="benchmarks.decode.translator:build",
        build_options={"export": False},
    ),
    "ctranslate2": _ctranslate2(_TWO_THREADS, compute_type="float32"),
    "ctranslate2_int8": _ctranslate2(_TWO_THREADS, compute_type="int8"),
    "ctranslate2_2x1": _ctranslate2(_ONE_THREAD, compute_type="float32", workers=THREADS),
    "onnx": _onnx("float32"),
    "onnx_int8": _onnx("int8"),
    "onnx_int8_inputs": _onnx("int8", rounds_inputs=True),
    "litert": _litert("float32"),
    "litert_int8": _litert("int8"),
    "marian": System("benchmarks.decode.marian:task", ("torch", "transformers"), TORCH),
    "marian_decoder": System(
        "benchmarks.decode.marian_decoder:task",
        ("pymarian", "tensorflow"),
        TENSORFLOW,
        build="benchmarks.decode.marian_decoder:build",
    ),
}
