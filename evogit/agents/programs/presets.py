"""How well-known coding programs are run once, unattended, with no network but a model's address.

In arguments, in values of the environment and in files these stand for what is known when a program starts, and
nothing else in braces does: `{url}` (of an endpoint on loopback, without "/v1"), `{model}`, `{brief}` (path of the
brief, relative to the workspace), `{workspace}` and `{home}`. A program runs in the workspace, with an empty stdin and
a HOME that holds nothing but the files below; the key of the endpoint is a dummy.

All of them were run in bubblewrap with `/usr` of Debian 12, Python 3.11 and node 20, in the versions named below: one
edit for a scripted model, an evaluation, and through the gateway also the end of its money. But for opencode, which
sent some packets of DNS, none of them tried to reach anything else. PATH must lead to them (npm puts them into
`/usr/local/bin` or `/usr/bin`), and a login shell that sets PATH anew must not be needed. What a login leaves (`login`)
is as their makers tell; it was not tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct, field

TASK = (
    "Do what the file {brief} says. The command `evaluate` evaluates the work tree as it is now and prints the scores."
)
"""What a program with a shell is told; all else is in the brief."""

KEY = "evogit"  # in place of a key: the gateway adds the true one outside


PATIENCE = "1800000"
"""Milliseconds that a command may take, where a program has a limit of its own: evaluations are slow."""


class Preset(Struct, frozen=True, kw_only=True):
    """A coding program, and what it takes to run it."""

    name: str  # what people call it in a population
    argv: tuple[str, ...]  # the command
    env: Mapping[str, str] = field(default_factory=dict)  # environment variables to add
    files: Mapping[str, str] = field(default_factory=dict)  # what it finds in HOME: path relative to it -> content
    # Python requirements that are all of it; none for a program that is installed otherwise
    packages: tuple[str, ...] = ()
    needs: str = ""  # how a person installs what pip cannot; empty when there is nothing
    junk: tuple[str, ...] = ()  # patterns, as in a `.gitignore`, of what the program leaves in the workspace for itself
    login: tuple[str, ...] = ()  # paths relative to HOME of what a login with its maker's subscription leaves
    memory: int = 4 << 30  # bytes that it and what it starts may take together
    processes: int = 256  # how many processes and threads that may be


_LITELLM = {"OPENAI_API_BASE": "{url}/v1", "OPENAI_API_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

AIDER = Preset(
    name="aider",
    argv=(
        *("python3", "-m", "aider", "--model", "openai/{model}", "--weak-model", "openai/{model}"),
        *("--message-file", "{brief}", "--edit-format", "diff", "--yes-always", "--no-auto-commits"),
        *("--no-dirty-commits", "--no-gitignore", "--no-auto-lint", "--auto-test", "--test-cmd", "evaluate; false"),
        *("--no-suggest-shell-commands", "--no-detect-urls", "--no-check-update", "--no-show-release-notes"),
        *("--no-show-model-warnings", "--analytics-disable", "--no-pretty", "--no-fancy-input", "--no-stream"),
        *("--disable-playwright", "--model-metadata-file", "{home}/models.json"),
        *("--model-settings-file", "{home}/settings.json"),
        *("--chat-history-file", "{home}/chat.md", "--input-history-file", "{home}/input"),
    ),
    env=_LITELLM,
    files={
        "models.json": '{"openai/{model}": {"litellm_provider": "openai", "mode": "chat"}}',
        "settings.json": '[{"name": "openai/{model}", "edit_format": "diff", "use_temperature": false}]',
    },
    packages=("aider-chat",),
    junk=(".aider*",),
)
"""aider 0.86.2 has no tools: it edits the files that the brief or its model names, then shows the model what `evaluate`
prints, as often as that edits again, up to three times (a command that fails is shown; one that does not is not).
Without `models.json` it fetches a list of models. It goes on asking for a minute after the money is gone. There are no
wheels of it for Python 3.13 or newer."""

MINI = Preset(
    name="mini",
    argv=(
        *("python3", "-m", "minisweagent", "--model", "openai/{model}", "--yolo", "--exit-immediately"),
        *("--cost-limit", "0", "--config", "mini.yaml", "--config", f"environment.timeout={PATIENCE[:-3]}"),
        *("--task", TASK, "--output", "{home}/trajectory.json"),
    ),
    env={
        **_LITELLM,
        "MSWEA_CONFIGURED": "true",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_SILENT_STARTUP": "1",
        "PYTHONWARNINGS": "ignore",
        "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "3",
    },
    packages=("mini-swe-agent", "litellm<1.82"),
)
"""mini-swe-agent 2.4.6, with the shell as its one tool. litellm from 1.82 on imports what it does not bring along as
soon as there are tools (seen in 1.106.2)."""

CLAUDE = Preset(
    name="claude",
    argv=(
        *("claude", "--print", TASK, "--model", "{model}", "--dangerously-skip-permissions"),
        *("--tools", "Bash,Edit,Glob,Grep,Read,Write", "--disable-slash-commands", "--strict-mcp-config"),
        *("--output-format", "stream-json", "--verbose", "--no-session-persistence"),
    ),
    env={
        "ANTHROPIC_BASE_URL": "{url}",
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "{model}",
        "CLAUDE_CODE_SUBAGENT_MODEL": "{model}",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "BASH_DEFAULT_TIMEOUT_MS": PATIENCE,
        "BASH_MAX_TIMEOUT_MS": PATIENCE,
    },
    needs="install it for all users: npm install --global @anthropic-ai/claude-code",
    login=(".claude/.credentials.json", ".claude.json"),
)
"""Claude Code 2.1.197, without what needs a network or a person: its tools alone would be 60 KB of each request."""

CODEX = Preset(
    name="codex",
    argv=(
        *("codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ephemeral"),
        *("--color", "never", TASK),
    ),
    env={"EVOGIT_KEY": KEY},
    files={
        ".codex/config.toml": """\
model = "{model}"
model_provider = "evogit"
check_for_update_on_startup = false
allow_login_shell = false

[model_providers.evogit]
name = "EvoGit"
base_url = "{url}/v1"
env_key = "EVOGIT_KEY"
wire_api = "responses"

[analytics]
enabled = false

[features]
apps = false
plugins = false
"""
    },
    needs="install it for all users: npm install --global @openai/codex",
    login=(".codex/auth.json",),
)
"""Codex 0.169.0. A login shell would look for `evaluate` where the image's profile says."""

OPENCODE = Preset(
    name="opencode",
    argv=("opencode", "run", "--model", "evogit/{model}", "--title", "evogit", "--dir", "{workspace}", "--auto", TASK),
    env={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_EXPERIMENTAL_DISABLE_FILEWATCHER": "1",
        "OPENCODE_EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS": PATIENCE,
    },
    files={
        ".config/opencode/opencode.json": """\
{
  "autoupdate": false,
  "share": "disabled",
  "snapshot": false,
  "small_model": "evogit/{model}",
  "provider": {
    "evogit": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "EvoGit",
      "options": {"baseURL": "{url}/v1", "apiKey": "evogit"},
      "models": {"{model}": {"name": "{model}"}}
    }
  }
}
"""
    },
    needs="install it for all users: npm install --global opencode-ai",
    login=(".local/share/opencode/auth.json",),
)
"""OpenCode 1.18.33. It takes ten seconds of CPU to start; with its watcher of files it hangs."""

QWEN = Preset(
    name="qwen",
    argv=("qwen", "--yolo", "--auth-type", "openai", "--model", "{model}", "--output-format", "stream-json", TASK),
    env={"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": KEY},
    files={
        ".qwen/settings.json": """\
{
  "general": {"enableAutoUpdate": false, "disableAutoUpdate": true},
  "privacy": {"usageStatisticsEnabled": false},
  "telemetry": {"enabled": false},
  "tools": {"shell": {"enableInteractiveShell": false}}
}
"""
    },
    needs="install it for all users: npm install --global @qwen-code/qwen-code",
    login=(".qwen/oauth_creds.json",),
)
"""Qwen Code 0.15.10. Its interactive shell would need pseudo-terminals."""

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {preset.name: preset for preset in (AIDER, MINI, CLAUDE, CODEX, OPENCODE, QWEN)}
)
