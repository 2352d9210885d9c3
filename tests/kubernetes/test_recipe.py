"""The files of conf/kubernetes, as far as they can be judged without a cluster.

Spark's own loader reads the pod templates. The field names of the operator's manifest are compared with those of its
CustomResourceDefinition. No image is built and no pod is started.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_ckpt.jars import SUPPORTED_SPARK
from tests.support.gateway import GatewayJvm
from tests.support.provider import REPOSITORY

RECIPE = REPOSITORY / "conf" / "kubernetes"
PROPERTIES = REPOSITORY / "conf" / "spark-ckpt.properties"
TEMPLATES = ["driver", "executor"]

# Facts of the SparkApplication of API version sparkoperator.k8s.io/v1beta2 (Kubeflow's Spark operator, 2026-08).
API_VERSION = "sparkoperator.k8s.io/v1beta2"
REQUIRED = {"driver", "executor", "mainApplicationFile", "sparkVersion", "type"}
FIELDS = {
    "spec": """arguments batchScheduler batchSchedulerOptions deps driver driverIngressOptions
        driverPodDisruptionBudget dynamicAllocation executor failureRetries hadoopConf hadoopConfigMap image
        imagePullPolicy imagePullSecrets mainApplicationFile mainClass memoryOverheadFactor mode monitoring nodeSelector
        proxyUser pythonVersion restartPolicy retryInterval sparkConf sparkConfigMap sparkUIOptions sparkVersion suspend
        timeToLiveSeconds type volumes""",
    "driver": """affinity annotations configMaps coreLimit coreRequest cores dnsConfig env envFrom envSecretKeyRefs
        envVars gpu hostAliases hostNetwork image initContainers javaOptions kubernetesMaster labels lifecycle memory
        memoryLimit memoryOverhead nodeSelector podName podSecurityContext ports priorityClassName schedulerName secrets
        securityContext serviceAccount serviceAnnotations serviceLabels shareProcessNamespace sidecars template
        terminationGracePeriodSeconds tolerations volumeMounts""",
    "executor": """affinity annotations configMaps coreLimit coreRequest cores deleteOnTermination dnsConfig env envFrom
        envSecretKeyRefs envVars gpu hostAliases hostNetwork image initContainers instances javaOptions labels lifecycle
        memory memoryLimit memoryOverhead nodeSelector podSecurityContext ports priorityClassName schedulerName secrets
        securityContext serviceAccount shareProcessNamespace sidecars template terminationGracePeriodSeconds tolerations
        volumeMounts""",
    "restartPolicy": """onFailureRetries onFailureRetryInterval onSubmissionFailureRetries
        onSubmissionFailureRetryInterval type""",
}
VALUES = {"type": {"Java", "Python", "Scala", "R"}, "mode": {"cluster", "client"}, "pythonVersion": {"2", "3"}}


def manifest() -> dict[str, Any]:
    parsed = yaml.safe_load((RECIPE / "spark-application.yaml").read_text())
    assert isinstance(parsed, dict)
    return parsed


def instructions() -> list[str]:
    """Instructions of the Dockerfile, with continued lines joined and without comments."""
    text = re.sub(r"^#.*\n", "", (RECIPE / "Dockerfile").read_text(), flags=re.MULTILINE)
    return [line for line in text.replace("\\\n", " ").splitlines() if line]


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("kubernetes")
    gateway = GatewayJvm([], folder, folder / "jvm.log")
    yield gateway.classes
    gateway.close()


def load(jvm: Any, file: Path, container: str) -> Any:
    """The pod and its container, as Spark's `KubernetesUtils.loadPodFromTemplate` reads them; connects to nothing."""
    utils = jvm.java.lang.Class.forName("org.apache.spark.deploy.k8s.KubernetesUtils$").getField("MODULE$").get(None)
    client = jvm.io.fabric8.kubernetes.client.KubernetesClientBuilder().build()
    return utils.loadPodFromTemplate(
        client, file.as_uri(), jvm.scala.Some(container), jvm.org.apache.spark.SparkConf(False)
    )


@pytest.mark.parametrize("role", TEMPLATES)
def test_spark_loads_the_template(jvm: Any, role: str) -> None:
    loaded = load(jvm, RECIPE / f"{role}-template.yaml", f"spark-kubernetes-{role}")
    # Spark takes the container out of the pod, to add to it: the name has matched.
    assert str(loaded.container().getName()) == f"spark-kubernetes-{role}"
    assert len(loaded.pod().getSpec().getContainers()) == 0
    assert {str(variable.getName()) for variable in loaded.container().getEnv()} == {"PYSPARK_PYTHON", "AWS_REGION"}
    assert unknown_fields(f"{loaded.pod()} {loaded.container()}") == []


def unknown_fields(described: str) -> list[str]:
    """Fields that Kubernetes' classes do not have, in their description; the loader keeps them without a word."""
    return re.findall(r"additionalProperties=\{([^}]+)\}", described)


def test_a_misspelt_field_of_a_template_is_found(jvm: Any, tmp_path: Path) -> None:
    misspelt = tmp_path / "template.yaml"
    text = (RECIPE / "driver-template.yaml").read_text()
    misspelt.write_text(text.replace("terminationGracePeriodSeconds", "terminationGrace"))
    loaded = load(jvm, misspelt, "spark-kubernetes-driver")
    assert unknown_fields(str(loaded.pod())) == ["terminationGrace=30"]


def test_the_manifest_has_only_fields_of_the_operator() -> None:
    application = manifest()
    assert (application["apiVersion"], application["kind"]) == (API_VERSION, "SparkApplication")
    spec = application["spec"]
    assert spec.keys() >= REQUIRED
    for name, fields in FIELDS.items():
        part = spec if name == "spec" else spec[name]
        assert part.keys() <= set(fields.split()), name
    for field, values in VALUES.items():
        assert spec[field] in values
    assert spec["restartPolicy"]["type"] in {"Never", "Always", "OnFailure"}
    assert all(isinstance(value, str) for value in spec["sparkConf"].values())


def test_the_manifest_has_the_settings_of_the_properties_file() -> None:
    lines = [line.split() for line in PROPERTIES.read_text().splitlines() if line and not line.startswith("#")]
    assert manifest()["spec"]["sparkConf"] == dict(line for line in lines if len(line) == 2)


def test_the_image_has_what_the_manifest_and_spark_need() -> None:
    text = "\n".join(instructions())
    spark = manifest()["spec"]["sparkVersion"]
    assert spark in SUPPORTED_SPARK.values()
    assert f"ARG SPARK_IMAGE=apache/spark:{spark}-python3" in text
    assert f'spark_ckpt.jar_path("{spark}")' in text
    copied = [line.split()[1:-1] for line in instructions() if line.startswith("COPY")]
    sources = [source for each in copied for source in each]
    assert sources == ["dist/spark_ckpt-*.whl", "conf/spark-ckpt.properties"]
    assert PROPERTIES.is_file()
    # The only package it installs is ours, with an extra that exists. `make wheel` makes the file of the first COPY.
    assert re.findall(r"install (.+?)\s+&&", text) == ['--no-cache-dir "$(ls /tmp/wheels/spark_ckpt-*.whl)[s3]"']
    assert "\ns3 = [" in (REPOSITORY / "pyproject.toml").read_text()
    assert "-w dist ." in (REPOSITORY / "Makefile").read_text()
    assert instructions()[-1] == "USER 185"
