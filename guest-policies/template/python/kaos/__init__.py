"""The library for authors of KAOS policies in Python.

A policy is the module `policy` with the functions `describe` and `translate`. It can also have `needs`, `map_env` and
`assess`. An overlay has `amend` instead of `translate` and `assess`. The answers must depend only on the arguments.
This module also has all types of the contract, for example `kaos.Plan` and `kaos.EnvSource_Literal`.
"""

from wit_world.imports.types import *  # noqa: F403

from kaos import amend  # noqa: F401
from kaos.env import (  # noqa: F401
    Env,
    check_patch,
    container_env,
    each_once,
    env_of_pod_spec,
    unexpanded,
)
from kaos.need import Forbidden, equal, key, named, need_all, need_of, objects, one, secret  # noqa: F401
from kaos.answers import claim, condition, descriptor, note, plan, report  # noqa: F401
from kaos.quote import dns1035_label, member, shell_word, shown  # noqa: F401
from kaos.refusal import Refused, Violations, invalid, not_found, text, unsupported, waiting  # noqa: F401
from kaos.seen import Rollout, default_report, live  # noqa: F401
