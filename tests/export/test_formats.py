"""The formats of exports take the options that their entries name, and no others."""

import importlib
import typing

import pytest

from tf_transformer.config import DType, Quantization
from tf_transformer.errors import InputError
from tf_transformer.export.formats import FORMATS, Options, require_one_run, require_supported

CHOICES = [
    *({"dtype": dtype} for dtype in typing.get_args(DType)),
    *({"quantization": quantization} for quantization in typing.get_args(Quantization)),
    *({"jit_compile": value} for value in (True, "auto")),
]


def test_the_command_offers_each_format():
    main = importlib.import_module("tf_transformer.commands.export").main
    assert typing.get_args(typing.get_type_hints(main)["format"]) == tuple(FORMATS)


@pytest.mark.parametrize("choice", CHOICES, ids=lambda x: "_".join(map(str, x.values())))
@pytest.mark.parametrize("name", FORMATS)
def test_an_option_is_taken_or_refused_with_what_to_give(name, choice):
    """The entry of the format says which."""
    ((option, value),) = choice.items()
    form = FORMATS[name]
    is_taken = form.is_graph if option == "jit_compile" else value in getattr(form, f"{option}s")
    if is_taken:
        require_supported(name, Options(**choice))
        return
    with pytest.raises(InputError, match=f"--{option}") as error:
        require_supported(name, Options(**choice))
    others = str(error.value).rpartition("--format ")[2].rstrip(".").split(" or ")
    assert name not in others
    for other in others:
        require_supported(other, Options(**choice))


def test_int8_is_not_compiled():
    with pytest.raises(InputError, match="--dtype int8 has no --jit_compile"):
        require_supported("saved_model", Options(dtype="int8", jit_compile=True))


@pytest.mark.parametrize("name", FORMATS)
def test_an_ensemble_is_a_graph(name):
    if FORMATS[name].is_graph:
        require_one_run(name, Options())
    else:
        with pytest.raises(InputError, match="--format saved_model and without --jit_compile"):
            require_one_run(name, Options())
