"""Shared by all tests: two logical CPU devices, and one small trained run."""

import dataclasses
import fcntl
import gc
import os
import random
import shutil
import signal

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Two processes of tests share the cores: threads of CTranslate2 wait without computing.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import hypothesis
import keras
import numpy as np
import pytest

# The same examples in each run, however slow the machine is.
hypothesis.settings.register_profile(
    "fixed",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("fixed")

# A shell that starts the tests in the background makes them and all their processes ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    # Two devices, so that distribution is tested without GPUs. Before anything else runs on them.
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )


def pytest_collection_modifyitems(config, items):
    """On other backends than TensorFlow, a test gets each value of each parameter once.

    There, the tests look for differences between backends. TensorFlow gets all combinations.
    """
    if keras.backend.backend() == "tensorflow":
        return
    given, kept, left_out = set(), [], []
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        test = (item.path, getattr(item, "originalname", item.name))
        values = {(test, name, repr(value)) for name, value in parameters.items()}
        (kept if not values or values - given else left_out).append(item)
        given |= values
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish():
    """Python looks for unreachable objects less often, and not among those of modules."""
    gc.set_threshold(10_000, *gc.get_threshold()[1:])
    gc.freeze()


def pytest_runtest_setup():
    """Each test begins with the same random numbers, whatever ran before it.

    Keras draws its seeds from `random`. The seed of TensorFlow stays: setting it clears the caches
    of functions that tests share.
    """
    random.seed(1)
    np.random.seed(1)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """made_once(name, make): a folder that make(folder) fills, once for all workers.

    Tests read it and change copies.
    """
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def folder_of(name, make):
        folder, partial = base / name, base / f"{name}.partial"
        with open(base / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir()
                make(partial)
                partial.rename(folder)
        return folder

    return folder_of


@pytest.fixture(scope="session")
def run(made_once):
    """The folder of a small run on the generated corpus, trained for a few updates."""
    from tf_transformer.run.run import Run
    from tf_transformer.training import trainer

    return made_once("small_run", lambda folder: trainer.train(Run.at(folder, scored_config())))


@pytest.fixture(scope="session")
def other_run(made_once):
    """A run with the vocabulary of `run`, and other weights."""
    from tf_transformer.run.run import Run
    from tf_transformer.training import trainer

    config = small_config(seed=2, steps=2)
    return made_once("other_run", lambda folder: trainer.train(Run.at(folder, config)))


def small_config(**train_options):
    """A configuration that trains in seconds. It scores no predictions: a search takes longest."""
    from tf_transformer.config import Config, DataConfig, DecodeConfig, ModelConfig, TrainConfig

    options = {"steps": 4, "validate_every": 2, "warmup_steps": 10, "valid_score_examples": 0}
    options["threads"] = 2  # the same updates on every machine
    return Config(
        model=ModelConfig(num_layers=1, d_model=16, d_ff=32, num_heads=2),
        data=DataConfig(
            generated_pairs=60, held_out=20, vocabulary_size=320, batch_tokens=300, max_length=100
        ),
        train=TrainConfig(**(options | train_options)),
        decode=DecodeConfig(beam_size=2, max_extra_length=5),
    )


def scored_config(**train_options):
    """The configuration of `run`, which predicts and scores four examples at each validation."""
    return small_config(valid_score_examples=4, **train_options)


def without_trained_length(config):
    """A configuration as it was given: training stores its longest source in it."""
    decode = dataclasses.replace(config.decode, trained_source_length=0)
    return dataclasses.replace(config, decode=decode)


@pytest.fixture(scope="session")
def _predictors():
    """The predictors of `loaded_once`."""
    return {}


@pytest.fixture
def loaded_once(_predictors, monkeypatch):
    """Equal runs with equal options have one predictor, whose graphs are traced once."""
    from tf_transformer import tasks
    from tf_transformer.inference import predictor

    def files_of(run):
        files = (path for path in run.folder.path.rglob("*") if path.is_file())
        return sorted((str(path), path.stat().st_mtime_ns) for path in files)

    def load(run, dtype="float32"):
        key = repr((dtype, *((each.config, files_of(each)) for each in (run, *run.others))))
        if key not in _predictors:
            _predictors[key] = load_predictor(run, dtype)
        return _predictors[key]

    load_predictor = predictor.load_predictor
    for module in (predictor, tasks):
        monkeypatch.setattr(module, "load_predictor", load)


@pytest.fixture(scope="session")
def exported(run):
    """The translator whose export is `served`. It cuts sources to 64 tokens."""
    from tf_transformer.inference.translator import Translator

    return Translator.from_run(run, num_hypotheses=2, max_source_length=64)


@pytest.fixture(scope="session")
def served(exported, made_once):
    """Version 1 of the model `translator`, with warm-up requests."""
    from tf_transformer.export import warm_up

    def export(folder):
        path = folder / "translator" / "1"  # as in export/serving/models.config
        exported.save(path)
        batches = warm_up.batches(warm_up.SHAPES, exported.tokenizer.encode)
        warm_up.write(path, batches)

    return made_once("served", export) / "translator" / "1"


@pytest.fixture(scope="session")
def readers_folder(run, served, tmp_path_factory):
    """A folder with the run and the export that the examples of pages and docstrings name."""
    folder = tmp_path_factory.mktemp("reader")
    for kind in ("runs", "served"):
        (folder / kind).mkdir()
    (folder / "runs" / "mine").symlink_to(run)
    (folder / "runs" / "demo").symlink_to(run)
    for name in ("mine", "demo"):
        (folder / "served" / name).symlink_to(served.parent)
    return folder


@pytest.fixture(scope="session")
def browser():
    """Chromium without a window; its console log is `browser.get_log("browser")`."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver_program = shutil.which("chromedriver")
    if not (program and driver_program):
        pytest.skip(
            "needs the programs chromium (or google-chrome) and chromedriver on the PATH; "
            "Debian: apt-get install chromium chromium-driver"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver_program)
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


def weights_of(run, average=1):
    """The weights that the commands load, as arrays in the order of their names."""
    from tf_transformer.models.names import by_name
    from tf_transformer.run.run import Run
    from tf_transformer.tasks.translation import TRANSLATION

    weights = by_name(Run.load(run, average=average).model(TRANSLATION.build_model))
    return [np.asarray(weights[name]) for name in sorted(weights)]


def stored_weights(path):
    """The weights in a checkpoint's files, in the order of their names."""
    reader = tf.train.load_checkpoint(path)
    keys = [key for key in reader.get_variable_to_shape_map() if key.startswith("weights/")]
    return [reader.get_tensor(key) for key in sorted(keys)]
