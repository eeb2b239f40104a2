"""The reasons of notes that also become conditions."""

PARAMS_UNUSED = "ParamsUnused"
REQUIRED_ENV_MISSING = "RequiredEnvMissing"
COMMAND_IS_FLAGS = "CommandIsFlags"
