"""Decides how to start the container: image, command, arguments, and the variable for the parameters."""

import re
from dataclasses import dataclass, field

import kaos
import registry
from reasons import COMMAND_IS_FLAGS
from wanted import CUSTOM, PYTHON_STRING

# The build compiles the patterns.
_PROGRAM = re.compile(r"[^\[=<>!~;@ \t]*")
_NAME = re.compile(r"[A-Za-z0-9._][A-Za-z0-9._-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass
class Launch:
    """The image, the command and the variables with which the container starts."""

    # Empty if no image is known, so the user must set container.image.
    image: str = ""
    command: list | None = None
    args: list | None = None
    params_env_var: str = ""
    required_env: list = field(default_factory=list)
    # Whether the parameters are Python source. Each function at its top level is a tool.
    params_are_python: bool = False
    tools: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @staticmethod
    def of(source, settings, subject, own):
        """Returns how to start a source. `own` is the user's container."""
        if source.package is not None:
            return _package(source, settings)
        if source.runtime is None:
            if own.get("image"):
                return Launch()
            raise kaos.invalid("spec.container.image", "custom runtime requires container.image to be set")
        entries = registry.entries(settings, subject)
        if source.runtime not in entries:
            raise _unknown(source.runtime, entries, settings)
        try:
            runtime = registry.Runtime.of(source.runtime, entries[source.runtime])
        except registry.Malformed as reason:
            raise registry.malformed(settings, subject, reason) from None
        return _registered(source.runtime, runtime, settings, own)


def _unknown(name, entries, settings):
    name = kaos.shown(name, 63)
    if entries:
        remedy = f"use a runtime of the registry ({kaos.shown(', '.join(sorted(entries)), 1000)}), or"
    else:
        key, config_map = settings["registry"]["key"], settings["registry"]["configMap"]
        remedy = f"the registry is empty; add {name} to {key} of ConfigMap {config_map}, or use"
    message = f"unknown runtime: {name} (not found in registry): {remedy} {CUSTOM} with container.image"
    return kaos.invalid("spec.runtime", message)


def _registered(name, runtime, settings, own):
    if not runtime.image and not own.get("image"):
        message = f"the registry of runtimes has no image for runtime {kaos.shown(name, 63)}: set container.image"
        raise kaos.invalid("spec.container.image", message)
    launch = Launch(
        runtime.image,
        runtime.command,
        runtime.args,
        runtime.params_env_var,
        runtime.required_env,
        name == PYTHON_STRING,
        runtime.tools,
    )
    # A command replaces the image's entrypoint, so it must be a program, not a flag. The user's own command wins.
    if launch.command and launch.command[0].startswith("-") and not own.get("command"):
        if settings["commandFlagsAsArgs"]:
            launch.command, launch.args = None, launch.command + (launch.args or [])
        else:
            message = (
                f"the registry's command of runtime {name} begins with a flag and replaces the entrypoint of the image: "
                "move the command to args in the registry, or set the policy setting commandFlagsAsArgs"
            )
            launch.notes.append(kaos.note(COMMAND_IS_FLAGS, message, "spec.runtime"))
    return launch


def _package(source, settings):
    """Installs a package, and runs the command of this name. If the command fails, the Python module runs."""
    name = source.package
    program = _PROGRAM.match(name).group()
    if not _NAME.fullmatch(program) or _CONTROL.search(name):
        message = (
            f"`{kaos.shown(name, 253)}` is not a Python package: name a package of PyPI, or use runtime custom "
            "with container.image"
        )
        raise kaos.invalid(source.path, message)
    package, command, module = map(kaos.shell_word, (name, program, program.replace("-", "_")))
    script = f"pip install {package} && ( {command} || python -m {module} )"
    return Launch(settings["packageImage"], ["sh", "-c", kaos.unexpanded(script)])
