"""Runs many LiteLLM proxies one after the other without importing the packages each time, which takes ten seconds.

Imports the proxy once. Each further line of standard input is a pod in JSON. For each pod, this process forks: the child
becomes the pod's container and runs the proxy with the arguments and the variables of the pod. An empty line or the end
of the input ends the container.
"""

import json
import os
import signal
import sys
from pathlib import Path

import sitecustomize  # Puts a process into a pod.
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
    os.chdir(folder / "root/root")
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
