"""Reads an MCPServer in its current form and in all older forms. For each older field, the policy adds a note that
names the current field."""

from dataclasses import dataclass, field

import kaos

# The runtime with Python source in `params`.
PYTHON_STRING = "python-string"
# The runtime without an entry in the registry. A server with this runtime runs the user's own image.
CUSTOM = "custom"
# The reason of every note on an older field, and the type of the condition.
DEPRECATED = "Deprecated"


@dataclass
class Source:
    """What the server runs: a runtime of the registry, a Python package, or the user's own image."""

    runtime: str | None = None
    package: str | None = None
    path: str = ""


@dataclass
class Params:
    """The parameters of the runtime: a text, or a key of a Secret."""

    path: str
    text: str = ""
    secret: dict | None = None

    def source(self):
        """Returns the source of the variable for the parameters."""
        if self.secret is None:
            return kaos.EnvSource_Literal(kaos.unexpanded(self.text))
        optional = self.secret.get("optional") or False
        return kaos.EnvSource_SecretKey(kaos.KeySelector(self.secret["name"], self.secret["key"], optional))


@dataclass
class Wanted:
    """An MCPServer after the policy has replaced older fields with current fields."""

    source: Source = field(default_factory=Source)
    params: Params | None = None
    telemetry: dict | None = None
    telemetry_path: str = "spec.telemetry"
    notes: list = field(default_factory=list)

    @staticmethod
    def of(spec):
        """Reads the spec."""
        wanted = Wanted(telemetry=spec.get("telemetry"))
        config, container = spec.get("config") or {}, spec.get("container") or {}
        if spec.get("type") is not None:
            wanted._older("spec.type", "spec.runtime", bool(spec.get("runtime")))
        if config.get("env"):
            # If container.env sets all variables of config.env, the variables in config.env have no effect.
            newer = {variable["name"] for variable in container.get("env") or []}
            is_ignored = all(variable["name"] in newer for variable in config["env"])
            wanted._older("spec.config.env", "spec.container.env", is_ignored)
        if spec.get("resources") is not None:
            wanted._older("spec.resources", "spec.container.resources", container.get("resources") is not None)
        written = _written(config)
        package = wanted._package(config, "spec.runtime" if spec.get("runtime") else written[0].path if written else None)
        own = Params("spec.params", spec["params"]) if spec.get("params") else None
        wanted._older_sources(written, own)
        wanted.source = _source(spec, written, package)
        if config.get("telemetry") is not None:
            wanted._older("spec.config.telemetry", "spec.telemetry", wanted.telemetry is not None)
            if wanted.telemetry is None:
                wanted.telemetry, wanted.telemetry_path = config["telemetry"], "spec.config.telemetry"
        wanted.params = own or (written[0] if written else None)
        return wanted

    def _package(self, config, newer):
        """Reads the package from the oldest fields. `newer` is the path of a field that wins over these fields."""
        found = None
        tools = config.get("tools") or {}
        for name, path in [
            (tools.get("fromPackage"), "spec.config.tools.fromPackage"),
            (config.get("mcp"), "spec.config.mcp"),
        ]:
            if not name:
                continue
            counts = newer or (found and found.path)
            if counts:
                self._ignored(path, counts)
            else:
                self._deprecated(path, "a runtime of the registry, or spec.runtime custom with container.image")
            found = found or Source(package=name, path=path)
        return found

    def _older_sources(self, written, own):
        for at, params in enumerate(written):
            counts = own or (written[0] if at else None)
            if counts:
                self._ignored(params.path, counts.path)
            elif params.secret is None:
                self._deprecated(params.path, "spec.runtime python-string with spec.params")
            else:
                now = "spec.runtime python-string, and MCP_TOOLS_STRING in spec.container.env"
                self._deprecated(params.path, now)

    def _older(self, old, newer, is_set):
        (self._ignored if is_set else self._deprecated)(old, newer)

    def _deprecated(self, old, now):
        self.notes.append(kaos.note(DEPRECATED, f"{old} is an older field and still works: use {now}", old))

    def _ignored(self, old, newer):
        message = f"{old} is an older field and is ignored, since {newer} is set: remove it"
        self.notes.append(kaos.note(DEPRECATED, message, old))


def _written(config):
    """Returns the source texts in the older fields. The policy uses the first one."""
    tools = config.get("tools") or {}
    texts = [("spec.config.tools.fromString", tools.get("fromString")), ("spec.config.toolsString", config.get("toolsString"))]
    written = [Params(path, text) for path, text in texts if text]
    if tools.get("fromSecretKeyRef") is not None:
        written.append(Params("spec.config.tools.fromSecretKeyRef", secret=tools["fromSecretKeyRef"]))
    return written


def _source(spec, written, package):
    runtime = spec.get("runtime")
    if runtime == CUSTOM:
        return Source()
    if runtime:
        return Source(runtime=runtime)
    # Source text wins over a package, as in the Go operator.
    if written:
        return Source(runtime=PYTHON_STRING)
    if package and spec.get("type") == "node-runtime":
        message = (
            "packages of type node-runtime come from npm, which is not supported: use runtime custom with container.image"
        )
        raise kaos.invalid(package.path, message)
    if package:
        return package
    message = "a runtime is required: name one from the registry, or custom with container.image"
    raise kaos.invalid("spec.runtime", message)
