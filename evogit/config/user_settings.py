"""What belongs to a person and not to a repository: models, what they cost, and where their keys are."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import convert
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    PlainValidator,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from evogit.config.fields import Duration, Package, Place, Size, Word
from evogit.config.run_settings import AgentSpec, WorkerSpec
from evogit.config.values import nearest, problem, without_fixed
from evogit.core import ConfigError, UsageError

Dollars = Annotated[FiniteFloat, Field(ge=0)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*$")]

_KEY_ITSELF = re.compile(r"api_?key|key|token|secret|password", re.IGNORECASE)


class _UserTable(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def endpoint_url(text: str) -> str:
    """Return an endpoint's URL that has no name or password in it. Raises ValueError: it is something else."""
    try:
        parts = urlsplit(text)
        plain = parts.scheme in ("http", "https") and parts.port != 0 and "@" not in parts.netloc
        (parts.hostname or "").encode("idna")
    except ValueError:
        plain = False
    if not plain or not parts.hostname or not re.fullmatch(r"[^\s?#]+", text):
        shown = text.rpartition("@")[2]
        raise ValueError(f'expected a URL such as "https://host/v1", without a name or password, got {shown!r}')
    return text


class PriceTable(_UserTable):
    """`price`: dollars for a million tokens; all 0 for a model of your own."""

    input: Dollars  # of the prompt
    # of that part of the prompt which the endpoint has in its cache; default: as much as `input`
    cached: Dollars | None = None
    output: Dollars  # of the reply, reasoning included
    # of that part of the prompt which goes into the endpoint's cache (Anthropic); default: 1.25 times `input`
    written: Dollars | None = None


class ModelTable(_UserTable):
    """`[models.NAME]`: one model, how it is reached and what it costs."""

    id: str = ""  # what the endpoint calls it; default: NAME
    base_url: str = ""  # the endpoint, up to "/v1"; default: OPENAI_BASE_URL, else OpenAI's own
    # the environment variable that holds the key; default: OPENAI_API_KEY, where `base_url` is not given either
    key_env: Variable | None = None
    key_command: str = ""  # the shell command that prints the key, such as "pass show openai"
    # what it costs; default: EvoGit's own table, which knows some models at OpenAI's own endpoint
    price: PriceTable | None = None
    temperature: Annotated[FiniteFloat, Field(ge=0)] | None = None  # how much replies vary; default: the endpoint's own
    # tokens of a reply at most, reasoning included; default: the endpoint's own
    max_tokens: int | None = Field(default=None, gt=0)
    reasoning_effort: str = ""  # how long it thinks, such as "low"; default: the endpoint's own
    context: int = Field(default=100_000, ge=1000)  # tokens of a question at most; a brief is fitted to it
    # questions that its endpoint has at a time, at most, those of other models there included; default: no limit
    at_once: int | None = Field(default=None, gt=0)
    # how long to wait for the reply to begin, and in it for more to come; default: as long as `total`
    first_byte: Duration | None = None
    total: Duration = 600.0  # how long a reply may take, after which the question is given up

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, value: str) -> str:
        return endpoint_url(value) if value else ""

    @field_validator("key_command")
    @classmethod
    def _one_place(cls, value: str, info: Any) -> str:
        if value and info.data.get("key_env"):
            raise ValueError("expected key_env or key_command, got both")
        return value


class CommandTable(_UserTable):
    """`[commands.NAME]`: a coding program that runs as an agent; what is not said is the preset's of that name."""

    preset: str = ""  # the preset whose place this takes; default: NAME, where there is one
    # the command, run in the workspace; `{model}`, `{url}`, `{brief}`, `{home}` and `{workspace}` stand for values
    argv: tuple[str, ...] = Field(default=(), strict=False)
    env: dict[str, str] = {}  # environment variables, beside the preset's; with the same placeholders
    files: dict[Place, str] = {}  # files below its home, path -> text, beside the preset's; with the same placeholders
    # python requirements, and with "apt:" Debian packages (Docker), that its sandbox has; default: the preset's
    packages: tuple[Package, ...] = Field(default=(), strict=False)
    image: str = ""  # the image that its sandbox is made from (Docker); default: EvoGit's own
    # shell commands run once on top of the image, with a network (Docker), such as "npm install -g NAME"
    setup: tuple[str, ...] = Field(default=(), strict=False)
    # globs of files that it leaves in the workspace, beside the preset's
    junk: tuple[str, ...] = Field(default=(), strict=False)
    # "gateway": it asks models through EvoGit, which counts and limits that, and has no other network. "mount": it
    # has your login and a network, and its costs are not counted
    auth: Literal["gateway", "mount"] = "gateway"
    # with `auth = "mount"`: "own" is a network namespace of its own, as Docker makes them; "host" allows the host's
    # in bubblewrap, with all that listens on this machine
    network: Literal["own", "host"] = "own"
    # files and folders below your home that are its login, for `auth = "mount"`; default: the preset's
    login: tuple[Place, ...] = Field(default=(), strict=False)
    # how often it may have its files evaluated in a session, beside the end
    evaluations: int = Field(default=3, ge=0, le=100)
    minutes: Annotated[FiniteFloat, Field(gt=0, le=1440)] = 30.0  # how long a session may take
    tokens: int = Field(default=2_000_000, gt=0)  # what a session may read and write of models, in all
    memory: Size | None = None  # of all its processes; default: the preset's
    disk: Size = 1 << 30  # what it may write


def _spec(kind: type[AgentSpec] | type[WorkerSpec]) -> Callable[[Any, ValidationInfo], AgentSpec | WorkerSpec]:
    """Return what reads agents or a worker as their option spells them, or as a table of earlier versions."""

    def read(value: Any, info: ValidationInfo) -> AgentSpec | WorkerSpec:
        try:
            if not isinstance(value, str):
                return convert(value, kind)
            if kind is WorkerSpec:
                return WorkerSpec.parse(value)
            return AgentSpec.parse(value, (info.context or {})["folder"])
        except (UsageError, msgspec.ValidationError) as error:
            raise ValueError(f"{error}") from None

    return read


# `KIND[@MODEL][:N][+ROLE.md]` or `FILE.py:Name[:N][+ROLE.md]`, files as seen from these settings
Agents = Annotated[AgentSpec, PlainValidator(_spec(AgentSpec))]
# `COMMAND[:N]`: what runs `evogit worker` there, such as "ssh gpu1 evogit worker:4"; no shell reads it
Worker = Annotated[WorkerSpec, PlainValidator(_spec(WorkerSpec))]


class UserSettings(_UserTable):
    """A whole settings.toml."""

    # what the journal survives: the death of the process, or with "fsync" (slower) a power loss, too
    durability: Literal["process", "fsync"] = "process"
    model: str = ""  # the model of agents that name none
    models: dict[str, ModelTable] = {}  # models by the name that people call them by
    commands: dict[Word, CommandTable] = {}  # coding programs by the name that `--agent` calls them by
    workers: dict[Word, Worker] = {}  # remote workers by the name that `--workers` calls them by
    agents: tuple[Agents, ...] = Field(default=(), strict=False)  # those of runs that are started without naming any

    @field_validator("models")
    @classmethod
    def _names(cls, value: dict[str, ModelTable]) -> dict[str, ModelTable]:
        plain = [name for name in value if name and name.isprintable() and "," not in name]
        if odd := [name for name in value if name not in plain or name.startswith("script:")]:
            raise ValueError(
                f'expected names of models without commas that do not begin with "script:", got {odd[0]!r}'
            )
        return value

    def missing(self, model: str, file: Path) -> str:
        """That a model is not in the settings, which are this file, and which one was probably meant, for messages."""
        if not self.models and not file.is_file():
            return f"there is no model {model!r}, as there are no settings: {file} does not exist"
        return f"there is no model {model!r} in {file}; {nearest(model, self.models)}"


def settings_file(environ: Mapping[str, str]) -> Path:
    """Where a person's settings are: $EVOGIT_SETTINGS, else evogit/settings.toml in the XDG folder."""
    if named := environ.get("EVOGIT_SETTINGS"):
        return Path(named)
    folder = Path(environ.get("XDG_CONFIG_HOME", ""))
    home = Path(environ.get("HOME") or "~").expanduser()
    return (folder if folder.is_absolute() else home / ".config") / "evogit" / "settings.toml"


FIXED = {
    "models.*.connect": "10s",
    "models.*.retries": "5",
    "models.*.pause": "1s, doubled from attempt to attempt",
    "commands.*.processes": "256",
}
"""Keys that earlier versions had, and what holds now."""


def load_user_settings(environ: Mapping[str, str]) -> UserSettings:
    """Read the settings, or the defaults without a file. Raises ConfigError: naming every problem and its place."""
    file = settings_file(environ)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        return UserSettings.model_validate(without_fixed(table, FIXED, file), context={"folder": file.parent})
    except FileNotFoundError:
        if environ.get("EVOGIT_SETTINGS"):
            raise ConfigError(f"expected settings at {file}, which EVOGIT_SETTINGS names; there is no file") from None
        return UserSettings()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: not TOML: {error}") from error
    except ValidationError as error:
        raise ConfigError("\n".join(f"{file}: {_problem(each['loc'], each)}" for each in error.errors())) from None


def _problem(loc: tuple[int | str, ...], error: Mapping[str, Any]) -> str:
    if error["type"] == "extra_forbidden" and _KEY_ITSELF.fullmatch(str(loc[-1])):
        say = 'key_env = "VARIABLE" or key_command = "COMMAND"'
        return f"{'.'.join(map(str, loc))}: a credential itself never stands in a file; say where it is: {say}"
    table: type[BaseModel] = UserSettings
    if place := loc[:-1]:
        table = CommandTable if place[0] == "commands" else PriceTable if place[2:] == ("price",) else ModelTable
    return problem(loc, error, table.model_fields)
