"""The fixed names of the kind. The children on a cluster have these names, so the names are not settings."""

API_VERSION = "kaos.tools/v1alpha1"
APP = "mcpserver"
PREFIX = "mcpserver"
CONTAINER = "mcp-server"
ROUTE_PREFIX = "mcp"
