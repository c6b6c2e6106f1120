"""The configurations, read with the server's own messages, or run in a shell."""

import pathlib
import re
import shutil
import subprocess

import pytest
import yaml
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf import wrappers_pb2 as _wrappers  # noqa: F401  in BatchingParameters
from tensorflow_serving.config import model_server_config_pb2

from export.serving import client_grpc, client_rest
from tf_transformer.export import warm_up
from tf_transformer.machine.thresholds import BATCH_BUCKETS

KIT = pathlib.Path(__file__).parents[3] / "export" / "serving"
NAME = "translator"


def model_config(text: str):
    config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    (model,) = config.model_config_list.config
    return model


def test_the_server_can_read_models_config():
    text = (KIT / "models.config").read_text("utf-8")
    model = model_config(text)
    assert (model.name, model.base_path, model.model_platform) == (
        NAME,
        f"/models/{NAME}",
        "tensorflow",
    )
    assert model.model_version_policy.latest.num_versions == 1


@pytest.mark.parametrize(("comment", "versions"), [("To go back", [1]), ("Two versions", [1, 2])])
def test_the_alternatives_in_the_comments_of_models_config_are_valid(comment, versions):
    text = (KIT / "models.config").read_text("utf-8")
    before, _, after = text.partition(f"# {comment}")
    before = re.sub(r"(?m)^ *model_version_policy.*$", "", before)
    block, gap, rest_ = after.partition("\n\n")
    block = re.sub(r"(?m)^ *# (\w+ \{.*\})$", r"\1", block)
    model = model_config(f"{before}# {comment}{block}{gap}{rest_}")
    assert model.model_version_policy.specific.versions == versions
    assert dict(model.version_labels) in ({}, {"stable": 1, "canary": 2})
    assert bool(model.version_labels) == (len(versions) == 2)


def batching_parameters():
    """TF Serving's message BatchingParameters, which is in no Python package."""
    wrapped = [
        "max_batch_size",
        "batch_timeout_micros",
        "max_enqueued_batches",
        "num_batch_threads",
    ]
    file = descriptor_pb2.FileDescriptorProto(
        name="batching_parameters.proto",
        package="serving_kit_test",
        syntax="proto3",
        dependency=["google/protobuf/wrappers.proto"],
    )
    message = file.message_type.add(name="BatchingParameters")
    field = descriptor_pb2.FieldDescriptorProto
    for number, name in enumerate(wrapped, start=1):
        message.field.add(
            name=name,
            number=number,
            label=field.LABEL_OPTIONAL,
            type=field.TYPE_MESSAGE,
            type_name=".google.protobuf.Int64Value",
        )
    message.field.add(
        name="allowed_batch_sizes", number=6, label=field.LABEL_REPEATED, type=field.TYPE_INT64
    )
    pool = descriptor_pool.Default()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    descriptor = pool.FindMessageTypeByName("serving_kit_test.BatchingParameters")
    return message_factory.GetMessageClass(descriptor)()


@pytest.fixture(scope="module")
def batching():
    message = batching_parameters()
    return {
        name: text_format.Parse((KIT / f"batching_{name}.txt").read_text("utf-8"), type(message)())
        for name in ("cpu", "gpu")
    }


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_the_batching_parameters_are_valid(device, batching):
    found = batching[device]
    sizes = list(found.allowed_batch_sizes)
    assert sizes == sorted(set(sizes))
    assert not sizes or sizes[-1] == found.max_batch_size.value  # required by the server
    for field in found.DESCRIPTOR.fields:
        assert field.name == "allowed_batch_sizes" or getattr(found, field.name).value > 0


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_requests_of_clients_and_warm_up_fit_into_a_batch(device, batching):
    most = batching[device].max_batch_size.value
    for client in (client_rest, client_grpc):
        assert client.parser().parse_args(["--model", NAME]).batch_size <= most
    assert max(*BATCH_BUCKETS, *(rows for rows, _ in warm_up.SHAPES)) <= most


def test_allowed_batch_sizes_are_those_that_xla_compiles(batching):
    sizes = list(batching["gpu"].allowed_batch_sizes)
    assert tuple(sizes[: len(BATCH_BUCKETS)]) == BATCH_BUCKETS
    assert all(size % BATCH_BUCKETS[-1] == 0 for size in sizes[len(BATCH_BUCKETS) :])


def compose() -> dict:
    return yaml.safe_load((KIT / "compose.yaml").read_text("utf-8"))["services"][NAME]


def test_the_files_and_folders_in_compose_exist():
    service = compose()
    assert re.fullmatch(r"tensorflow/serving:2\.\d+\.\d+", service["image"])
    assert [port.partition(":")[2] for port in service["ports"]] == ["8500", "8501"]
    mounts = {
        target: source for source, target, _ in (v.rsplit(":", 2) for v in service["volumes"])
    }
    assert mounts["/config"] == "."
    for word in service["command"]:
        if "=/config/" in word:
            assert (KIT / word.partition("=/config/")[2]).is_file()
    model = model_config((KIT / "models.config").read_text("utf-8"))
    assert model.base_path.startswith("/models/")
    assert "/models" in mounts


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(("state", "code"), [("AVAILABLE", 0), ("LOADING", 1), ("UNAVAILABLE", 1)])
def test_the_health_check_of_compose_works(state, code, stand_in, monkeypatch):
    monkeypatch.setattr(stand_in.model, "state", state)
    kind, *command = compose()["healthcheck"]["test"]
    assert kind == "CMD"
    command[-1] = command[-1].replace("8501", str(stand_in.rest_port))
    assert subprocess.run(command, timeout=10, check=False).returncode == code
