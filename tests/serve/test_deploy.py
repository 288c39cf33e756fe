"""What the docs say of how a server is run holds: commands parse, probes are there, units and manifests are whole."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from tests.docs.pages import DOCS

from candide.cli.group import cli
from candide.serve.run import _SHUTDOWN_SECONDS

PAGE = (DOCS / "how-to" / "serve.md").read_text()


def block(language):
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return found


def parses(words):
    """The options of a command as it is typed; an error where it is wrong."""
    assert (words[0].rpartition("/")[2], words[1]) == ("candide", "serve")
    return cli.commands["serve"].make_context("serve", words[2:]).params


def test_the_dockerfile(monkeypatch):
    monkeypatch.setenv("CANDIDE_TOKEN", "from outside")
    lines = [line.partition(" ") for line in block("dockerfile").splitlines()]
    found = {verb: rest for verb, _, rest in lines}
    assert list(found) == ["FROM", "RUN", "USER", "COPY", "EXPOSE", "CMD"]
    given = parses(json.loads(found["CMD"]))
    assert given["model"] == found["COPY"].split()[1]
    assert (str(given["port"]), given["token"]) == (found["EXPOSE"], "from outside")
    assert found["USER"].isdecimal()  # Kubernetes must see that it is not root
    assert f"--uid {found['USER']} " in found["RUN"]


def test_the_unit(tmp_path):
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str
    unit.read_string(block("ini"))
    service = unit["Service"]
    given = parses(shlex.split(service["ExecStart"]))
    assert given["learn"].startswith(f"/var/lib/{service['StateDirectory']}/")  # nowhere else may it write
    assert int(service["TimeoutStopSec"]) > _SHUTDOWN_SECONDS
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd-analyze is not installed")
    at = tmp_path / "orders.service"
    at.write_text(block("ini").replace("/opt/candide/bin/candide", sys.executable))
    done = subprocess.run([analyse, "verify", "--man=no", str(at)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_manifest(served):
    yaml = pytest.importorskip("yaml")
    made = yaml.safe_load(block("yaml"))
    assert (made["apiVersion"], made["kind"]) == ("apps/v1", "Deployment")
    pod = made["spec"]["template"]
    assert made["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > _SHUTDOWN_SECONDS
    [container] = pod["spec"]["containers"]
    [port] = [one["containerPort"] for one in container["ports"]]
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        probe = container[name]["httpGet"]
        assert probe["port"] == port
        assert served.paths[probe["path"]]["GET"].is_probe  # whoever asks
    assert [one["name"] for one in container["env"]] == ["CANDIDE_TOKEN"]
