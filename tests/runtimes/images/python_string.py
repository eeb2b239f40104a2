"""Stands in for KAOS's image of the MCP runtime `python-string`, which is no package: serves with FastMCP the functions
that MCP_TOOLS_STRING holds, over HTTP at port 8000 and path /mcp."""

import inspect
import os

from fastmcp import FastMCP

server = FastMCP(os.environ.get("OTEL_SERVICE_NAME", "python-string"))
names: dict = {}
exec(os.environ["MCP_TOOLS_STRING"], names)
for value in list(names.values()):
    if inspect.isfunction(value):
        server.tool(value)
server.run(transport="http", host="0.0.0.0", port=8000, path="/mcp")
