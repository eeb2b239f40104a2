"""Replaces KAOS's image of the MCP runtime `fastmcp-codemode`, which is not published as a package. Serves the tools of the
servers in MCP_SERVERS_CONFIG with FastMCP's code mode, over HTTP on port 8000 and path /mcp: a caller sends code that calls
these tools."""

import json
import os

from fastmcp import FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy

server = FastMCP(os.environ.get("OTEL_SERVICE_NAME", "fastmcp-codemode"))
for one in json.loads(os.environ["MCP_SERVERS_CONFIG"])["servers"]:
    server.mount(create_proxy(one["url"]), namespace=one["name"])
server.add_transform(CodeMode())
server.run(transport="http", host="0.0.0.0", port=8000, path="/mcp")
