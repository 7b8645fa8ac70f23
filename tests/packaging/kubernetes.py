"""The objects that `packaging/kubernetes` makes, and the environment that a pod's container gets of them.

Only what the manifests use is followed: `envFrom` of ConfigMaps, `value` with `$(NAME)`, `fieldRef` and `secretKeyRef`.
"""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.pages import ROOT, blocks

KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
FOLDER = ROOT / "packaging" / "kubernetes"
OVERLAYS = sorted(path.name for path in (FOLDER / "overlays").iterdir())

Object = Mapping[str, Any]


def kustomized(folder: Path) -> str:
    """Return what `kubectl kustomize` makes of a folder, as YAML."""
    assert KUBECTL is not None
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def objects(text: str) -> list[Object]:
    return list(YAML(typ="safe").load_all(text))


def of_the_page(folder: Path, number: int, secrets: Mapping[str, str] | None = None) -> Path:
    """Write a kustomization of docs/kubernetes.md into a new folder, beside a copy of this project; return the folder.

    Args:
        secrets: text of the files of its Secret by name; others have a text that is not a secret.
    """
    shutil.copytree(FOLDER, folder / "barnabas" / "packaging" / "kubernetes")
    text = blocks("docs/kubernetes.md", "yaml")[number]
    (folder / "kustomization.yaml").write_text(text)
    for generated in YAML(typ="safe").load(text).get("secretGenerator", ()):
        for name in generated["files"]:
            (folder / name).write_text((secrets or {}).get(name, "not a secret"))
    return folder


def with_brokers(folder: Path, count: int) -> None:
    """Change the kustomization of a folder as docs/kubernetes.md says under "More and fewer nodes", to so many brokers without a vote."""
    yaml = YAML(typ="safe")
    file = folder / "kustomization.yaml"
    kustomization, more = yaml.load(file.read_text()), yaml.load(blocks("docs/kubernetes.md", "yaml")[-1])
    (brokers,) = more["resources"]
    kustomization["resources"] = [*dict.fromkeys([*kustomization["resources"], brokers])]
    (counted,) = more["replicas"]
    kustomization["replicas"] = [{**counted, "count": count}]
    with file.open("w") as written:
        yaml.dump(kustomization, written)


def of_kind(found: list[Object], kind: str, name: str = "") -> Object:
    """Return the one object of a kind; of several the one with this name."""
    (one,) = [each for each in found if each["kind"] == kind and name in ("", each["metadata"]["name"])]
    return one


def stateful_sets(found: list[Object]) -> list[Object]:
    return [each for each in found if each["kind"] == "StatefulSet"]


def container(workload: Object) -> Object:
    (one,) = workload["spec"]["template"]["spec"]["containers"]
    assert isinstance(one, Mapping)
    return one


def init_container(workload: Object) -> Object:
    (one,) = workload["spec"]["template"]["spec"]["initContainers"]
    assert isinstance(one, Mapping)
    return one


def pod_names(stateful_set: Object) -> list[str]:
    first = stateful_set["spec"].get("ordinals", {}).get("start", 0)
    name = stateful_set["metadata"]["name"]
    return [f"{name}-{first + number}" for number in range(stateful_set["spec"]["replicas"])]


def environment(found: list[Object], stateful_set: Object, pod: str, zone: str = "") -> dict[str, str]:
    """Return the variables of a pod's container, in which the image's own are not.

    Args:
        found: the objects among which the ConfigMaps and Secrets are.
        zone: of the machine; empty where Kubernetes does not tell it.
    """
    fields = {
        "metadata.name": pod,
        "metadata.namespace": stateful_set["metadata"]["namespace"],
        "metadata.labels['apps.kubernetes.io/pod-index']": pod.rpartition("-")[2],
        "metadata.labels['topology.kubernetes.io/zone']": zone,
    }
    variables: dict[str, str] = {}
    for source in container(stateful_set).get("envFrom", ()):
        variables |= of_kind(found, "ConfigMap", source["configMapRef"]["name"])["data"]
    listed = container(stateful_set)["env"]
    # A reference sees what stands before it, as for the kubelet.
    for each in listed:
        origin = each.get("valueFrom", {})
        if "fieldRef" in origin:
            value = fields[origin["fieldRef"]["fieldPath"]]
        elif "secretKeyRef" in origin:
            secret = of_kind(found, "Secret", origin["secretKeyRef"]["name"])
            value = base64.b64decode(secret["data"][origin["secretKeyRef"]["key"]]).decode()
        else:
            value = re.sub(r"\$\((\w+)\)", lambda named: variables.get(named[1], named[0]), each["value"])
        variables[each["name"]] = value
    return variables
