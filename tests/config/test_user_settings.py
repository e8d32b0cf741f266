from __future__ import annotations

from pathlib import Path

import pytest

from evogit.config.run_settings import AgentSpec, WorkerSpec
from evogit.config.user_settings import UserSettings, load_user_settings, settings_file
from evogit.core import ConfigError
from evogit.trust import state_folder

ALL = """\
durability = "fsync"
model = "big"

[models.big]
id = "vendor/big"
base_url = "https://host.example/v1"
key_command = "pass show key"
price = {input = 1.5, output = 3}
total = "20m"

[workers]
box = "ssh box evogit worker:4"
"""

AGENTS = 'agents = ["editor@big,small:3", "mutator", "mine.py:Own:2"]\n'
OLD = """
[[agents]]
kind = "editor"
model = "big,small"
count = 3
[[agents]]
kind = "mutator"
[[agents]]
kind = "mine.py:Own"
count = 2
[workers.old]
command = "ssh box evogit worker"
jobs = 4
"""


def load(tmp_path: Path, text: str) -> UserSettings:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    return load_user_settings({"EVOGIT_SETTINGS": str(file)})


def test_settings_are_read(tmp_path: Path) -> None:
    settings = load(tmp_path, AGENTS + ALL)
    assert settings.durability == "fsync"
    assert settings.models["big"].total == 1200
    assert settings.agents == (
        AgentSpec("editor", "big,small", 3),
        AgentSpec("mutator"),
        AgentSpec("mine.py:Own", count=2),
    )
    box = settings.workers["box"]
    assert (box.command, box.jobs) == ("ssh box evogit worker", 4)
    old = load(tmp_path, ALL + OLD)
    assert (old.agents, old.workers["old"]) == (settings.agents, WorkerSpec(box.command, box.jobs))


def test_a_key_that_is_fixed_now_is_read_over_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    old = '[models.big]\npause = "2s"\nretries = 3\nconnect = "1s"\n[commands.own]\nprocesses = 9\n'
    for _ in range(2):
        assert load(tmp_path, old).models.keys() == {"big"}
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 4
    assert all(str(tmp_path) in record.getMessage() for record in caplog.records)


def test_where_settings_are(tmp_path: Path) -> None:
    home = {"HOME": "/home/x"}
    assert settings_file(home) == Path("/home/x/.config/evogit/settings.toml")
    assert settings_file({**home, "XDG_CONFIG_HOME": "/c"}) == Path("/c/evogit/settings.toml")
    assert settings_file({**home, "XDG_CONFIG_HOME": "c"}) == Path("/home/x/.config/evogit/settings.toml")
    assert settings_file({"HOME": ""}).is_absolute()  # the current folder may be a stranger's
    assert state_folder({"HOME": "", "XDG_STATE_HOME": "s"}).is_absolute()
    assert settings_file({**home, "XDG_CONFIG_HOME": "/c", "EVOGIT_SETTINGS": "/s.toml"}) == Path("/s.toml")
    assert load_user_settings({"HOME": str(tmp_path)}) == UserSettings()
    with pytest.raises(ConfigError, match="which EVOGIT_SETTINGS names"):
        load_user_settings({"EVOGIT_SETTINGS": str(tmp_path / "none.toml")})
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load_user_settings({"EVOGIT_SETTINGS": str(tmp_path)})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("modle = 'x'", 'modle: unknown key; did you mean "model"?'),
        ("[models.m]\nbase_ulr = 'x'", 'models.m.base_ulr: unknown key; did you mean "base_url"?'),
        ("[models.m]\nprice = {input = -1, output = 1}", "models.m.price.input: "),
        ("agents = ['editor:0']", "agents.0: expected --agent KIND"),
        ("[workers]\nbox = ''", "workers.box: expected"),
        ("[models.m]\napi_key = 'sk-123'", "models.m.api_key: a credential itself never stands in a file"),
        ("[models.m]\nbase_url = 'https://me:pw@host/v1'", "without a name or password"),
        ("[models.m]\nkey_env = 'A'\nkey_command = 'b'", "expected key_env or key_command, got both"),
        ("[models.m]\ntotal = 'soon'", "models.m.total: expected a positive duration"),
        ("[commands.own]\nfiles = {'../x' = 'y'}", 'expected a relative path such as ".config/name.toml"'),
        ("[commands.own]\nlogin = ['/etc/shadow']", 'expected a relative path such as ".config/name.toml"'),
        ("[commands.own]\nargv = 'own --now'", 'commands.own.argv: expected a list, such as ["own --now"]'),
        ("[commands.own]\nenv = ['A=1']", "commands.own.env: expected a table, NAME = VALUE below [commands.own.env]"),
        ("['models']\n'script:x' = {}", "names of models without commas that do not begin with"),
        ("model = ", "not TOML"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert said in str(caught.value)
    assert "sk-123" not in str(caught.value)
