"""Replaces KAOS's image of the MCP runtime `python-string`, which is not published as a package. Serves the
functions of the Python code in MCP_TOOLS_STRING as tools, with FastMCP over HTTP on port 8000 and path /mcp."""

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
