"""The fixed names of the kind. They identify the kind's objects on a cluster, so they are not settings."""

API_VERSION = "kaos.tools/v1alpha1"
APP = "mcpserver"
PREFIX = "mcpserver"
CONTAINER = "mcp-server"
ROUTE_PREFIX = "mcp"
