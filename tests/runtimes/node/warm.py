"""Runs many LiteLLM proxies one after the other without importing the packages each time, which takes ten seconds.

Imports the proxy once. Each line of standard input is then a pod in JSON; a copy of this process becomes its container,
and runs the proxy with the arguments and the variables of the pod. An empty line ends the container, as the end of the
input does.
"""

import json
import os
import signal
import sys
from pathlib import Path

import sitecustomize  # The node's other half: see there.
from litellm.proxy.proxy_cli import run_server
import litellm.proxy.proxy_server  # noqa: F401


def become(pod: dict) -> None:
    folder = Path(pod["folder"])
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(pod["variables"])
    os.chdir(folder / "home")
    sitecustomize.enter(Path(pod["node"]), folder)
    sys.argv = pod["words"]
    run_server()


print("warm", flush=True)
container = None
for line in sys.stdin:
    if line.strip():
        container = os.fork()
        if container == 0:
            pod = json.loads(line)
            try:
                become(pod)
            finally:
                Path(pod["folder"], "ended").touch()
                os._exit(1)
    else:
        if container:
            os.kill(container, signal.SIGKILL)
            os.waitpid(container, 0)
            container = None
        print("ended", flush=True)
if container:
    os.kill(container, signal.SIGKILL)
