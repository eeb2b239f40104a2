"""Makes a Python process a container of the tests' node. Python imports this file automatically when it starts.

The node uses the network of the machine, so that the node needs no rights and does not disturb other programs. This file
replaces functions of Python's sockets:

- A server that listens on all addresses gets a free port of 127.0.0.1. This file writes the number of the free port into
  a file for the node. The name of the file is the port that the server asked for.
- The name of a Service resolves to the address that the node gave to the Service. A connection to that address goes to
  the port of the pod. Other names and addresses do not exist, except those of the machine itself.
- A connection to 127.0.0.1 goes to the port of the own pod, if a process of the pod listens on this port.

This file removes its own environment variables before the program starts, so that the program sees exactly the variables
of its pod.
"""

import asyncio
import os
import socket
import sys
import types
from pathlib import Path

LOOPBACK = "127.0.0.1"
_bind, _connect, _connect_ex = socket.socket.bind, socket.socket.connect, socket.socket.connect_ex
_getaddrinfo = socket.getaddrinfo


def enter(node: Path, pod: Path) -> None:
    """Puts this process into the pod whose files are in the folder `pod`."""

    def bind(self, address):
        if self.family != socket.AF_INET or address[0] not in ("", "0.0.0.0"):
            return _bind(self, address)
        _bind(self, (LOOPBACK, 0))
        # Rename the complete file to its final name, so that the node never sees an empty file.
        port = pod / "ports" / str(address[1])
        written = pod / f"port-{address[1]}"
        written.write_text(str(self.getsockname()[1]))
        written.rename(port)

    def translate(self, address):
        if self.family not in (socket.AF_INET, socket.AF_INET6):
            return address
        if address[0] in (LOOPBACK, "::1", "localhost"):
            own = pod / "ports" / str(address[1])
            return (LOOPBACK, int(own.read_text())) if own.exists() else address
        endpoint = node / "endpoints" / f"{address[0]}:{address[1]}"
        try:
            return (LOOPBACK, int(Path(endpoint.read_text()).read_text()))
        except FileNotFoundError:
            raise ConnectionRefusedError(f"no pod of the node serves {address[0]}:{address[1]}") from None

    def getaddrinfo(host, port, *args, **kwargs):
        name = host.decode() if isinstance(host, bytes) else host
        service = node / "services" / str(name)
        if name and service.is_file():
            return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (service.read_text(), int(port)))]
        if name and name != "localhost" and not name.replace(".", "").isdigit() and ":" not in name:
            raise socket.gaierror(socket.EAI_NONAME, f"{name} is no Service of the node")
        return _getaddrinfo(host, port, *args, **kwargs)

    socket.socket.bind = bind
    socket.socket.connect = lambda self, address: _connect(self, translate(self, address))
    socket.socket.connect_ex = lambda self, address: _connect_ex(self, translate(self, address))
    socket.getaddrinfo = getaddrinfo


# The event loop of uvloop does not use the functions above, so replace uvloop by Python's own event loop.
sys.modules["uvloop"] = types.ModuleType("uvloop")
sys.modules["uvloop"].new_event_loop = asyncio.new_event_loop
os.environ.pop("PYTHONPATH", None)
if "TESTS_POD" in os.environ:
    enter(Path(os.environ.pop("TESTS_NODE")), Path(os.environ.pop("TESTS_POD")))
