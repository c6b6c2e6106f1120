"""Options: fields of a configuration, each of which says everything about itself in one line.

    warmup_steps: int = free(1000, positive, fits_text=True, common=True)

`same`, `inherited`, `free` and `search` make a field. Their names say what `train.init_from` means
for the option. A training run may start with the weights of another run, its origin:

- `same`: the new run has the origin's value, because the weights depend on it. Another value is an
  error.
- `inherited`: it has the origin's value unless the option is given.
- `free`: it does not depend on the origin.
- `search`: as `inherited`, for an option that changes predictions and no update. It may change when
  a training run resumes.

The other arguments are checks of the value and fields of `Rules`.
"""

import enum
import functools
import math
import numbers
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from tf_transformer.errors import InputError

FromOrigin = Literal["same", "inherited", "free"]
LARGEST_INT = 2**31 - 1  # searches count with int32
T = TypeVar("T")


class Check(NamedTuple):
    """A rule for a number or a list. Text that an option takes in place of it needs no check."""

    holds: Callable[[Any], bool]
    rule: str  # after "must", for the error
    reason: str = ""  # follows the value in the error


positive = Check(lambda value: value > 0, "be positive")
not_negative = Check(lambda value: value >= 0, "not be negative")
int32 = Check(lambda value: value <= LARGEST_INT, f"be at most {LARGEST_INT:,}")
rate = Check(lambda value: 0 <= value < 1, "be at least 0 and below 1")
at_least_one = Check(lambda value: value >= 1, "be at least 1")
probability = Check(lambda value: 0 < value <= 1, "be above 0 and at most 1")
share = Check(
    lambda value: 0 <= value <= 1, "be from 0 to 1, the share of the lines that is changed"
)


class Effect(enum.Enum):
    """The effect of an option of a search that no value turns off."""

    TEXTS = enum.auto()  # it changes predictions with each value
    # It changes which predictions there are, or sampling alone reads it. Exports need no option.
    CHOICE = enum.auto()
    SPEED = enum.auto()  # it changes speed and reports; predictions stay equal


Format = Literal["ctranslate2", "marian", "marian_npz"]
EACH_FORMAT: tuple[Format, Format, Format] = ("ctranslate2", "marian", "marian_npz")


@dataclass(frozen=True)
class Rules:
    """What a field says about its option."""

    from_origin: FromOrigin = "inherited"  # what `train.init_from` means for it
    checks: tuple[Check, ...] = ()  # rules for its value
    # Whether it may change when training resumes. free: it changes an update only by rounding and
    # by the noise of dropout. known_text: it names the text, if the folder has its identity.
    on_resume: Literal["fixed", "free", "known_text"] = "fixed"
    fine_tuning: Any = None  # the value of a start with weights of the same task; None: the default
    fits_text: bool = False  # training chooses its value by the size of the text
    of_preset: bool = False  # it differs between the presets of a model
    common: bool = False  # most users need it; the reference shows it first
    short_for: str = ""  # the option that it is a short form of
    derived: bool = False  # the dataclass computes the value for the default
    greedy: bool = False  # `DecodeConfig.greedy`, the search of validation, has it, too
    off: Any = None  # the value with which an option of the search changes no text, or its `Effect`
    formats: tuple[Format, ...] = ()  # of exports that have this option of the search


def free(default: T, *checks: Check, from_origin: FromOrigin = "free", **rules: Any) -> T:
    """A field with a default. The module's docstring describes the kinds of fields."""
    return field(default=default, metadata={"rules": Rules(from_origin, checks, **rules)})


same = functools.partial(free, from_origin="same")
inherited = functools.partial(free, from_origin="inherited")


def search(default: T, *checks: Check, off: Any, **rules: Any) -> T:
    """A field of a search, which says with which value it is off; see `Rules.off`."""
    rules = {"from_origin": "inherited", "on_resume": "free"} | rules
    return free(default, *checks, off=off, **rules)


def rules_of(option: Field) -> Rules:
    """What a field says. A field of a task outside this package may say nothing."""
    return option.metadata.get("rules", Rules())


class Option(NamedTuple):
    """An option of a configuration."""

    name: str  # as a user types it, like model.d_model
    rules: Rules
    value: Any  # the default, if the configuration is a class


def options_in(config: Any, prefix: str = "") -> Iterator[Option]:
    """All options of a dataclass, or of its class, and of the groups in it."""
    hints = get_type_hints(config if isinstance(config, type) else type(config))
    for option in fields(config):
        name, hint = prefix + option.name, hints[option.name]
        value = getattr(config, option.name, hint)  # a group of a class has no default
        if is_dataclass(value):
            yield from options_in(value, f"{name}.")
        else:
            yield Option("task" if name == "task.name" else name, rules_of(option), value)


def select(config: Any, wanted: Callable[[Rules], Any]) -> dict[str, Any]:
    """The values of the options whose rules are wanted, by name."""
    return {option.name: option.value for option in options_in(config) if wanted(option.rules)}


def check(config: Any, group: str, open_to: str = "") -> None:
    """Checks the types of a dataclass's values, and the checks that its fields name.

    NumPy's numbers become Python's numbers, and a list of texts becomes a tuple. A configuration
    can then be written to a file, and has a hash. Errors name options in their `group`, such as
    data.augment. The field `open_to` also takes texts outside its type, such as registered names.
    """
    prefix = f"{group}." if group else ""
    hints = get_type_hints(type(config))
    for option in fields(config):
        name, hint, value = option.name, hints[option.name], getattr(config, option.name)
        accepted = _as_type(value, str if name == open_to else hint)
        if accepted is None:
            raise InputError(f"{prefix}{name} must be {in_words(hint)}, got {value!r:.80}.")
        object.__setattr__(config, name, accepted)
    for option in fields(config):
        value = getattr(config, option.name)
        for holds, rule, reason in rules_of(option).checks if not isinstance(value, str) else ():
            if not holds(value):
                raise InputError(f"{prefix}{option.name} must {rule}, got {value}{reason}.")


def _as_type(value: Any, hint: Any) -> Any:
    """The value of a field with this type hint; None for a value of another type."""
    options = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        accepted = (_as_type(value, option) for option in options)
        return next((x for x in accepted if x is not None), None)
    if get_origin(hint) is Literal:
        return value if isinstance(value, str) and value in options else None
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            return None
        items = tuple(_as_type(item, options[0]) for item in value)
        return None if None in items else items
    if hint is str:  # that UTF-8 can encode
        is_text = isinstance(value, str) and not re.search("[\ud800-\udfff]", value)
        return value if is_text else None
    if isinstance(hint, type) and (hint is bool or is_dataclass(hint)):
        return value if isinstance(value, hint) else None
    if isinstance(value, bool):
        return None  # Python counts bool as an integer
    if isinstance(value, numbers.Integral):
        return int(value)
    is_finite = isinstance(value, numbers.Real) and math.isfinite(value)
    return float(value) if hint is float and is_finite else None


def in_words(hint: Any) -> str:
    """The values of a field's type, in words for an error message."""
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(in_words(kind) for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is tuple:
        if is_dataclass(get_args(hint)[0]):
            return "a list of corpora, like '[{source: a.en, target: a.de}, {path: b.tmx}]'"
        return "a list of text, like '[a, b]'"
    names = {bool: "true or false", int: "an integer", float: "a number", str: "text"}
    return names.get(hint, "a group of options")


def replaced(config: Any, options: Mapping[str, Any], of: str) -> Any:
    """A copy of a dataclass with new values for some fields; None keeps a value."""
    names = [field.name for field in fields(config)]
    options = {name: value for name, value in options.items() if value is not None}
    if unknown := options.keys() - set(names):
        raise InputError(
            f"unknown option {min(unknown)!r} of {of}; expected some of {', '.join(names)}."
        )
    return replace(config, **options)
