from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from evogit.config.user_settings import UserSettings
from evogit.core import UsageError
from evogit.llm import CredentialError, Price
from evogit.llm.registry import open_models

from .conftest import KEY, Opening, Settings

URL = "http://127.0.0.1:9/v1"


def test_a_name_that_settings_do_not_have_is_asked_of_openai(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    models = open_models(UserSettings())
    assert models.endpoint("gpt-5") == "https://api.openai.com/v1"
    model: Any = models.get("gpt-5-2025-08-07")
    assert model is models.get("gpt-5-2025-08-07")
    assert model.price == Price(prompt=1.25, cached=0.125, completion=10)
    assert models.get("mystery").price is None
    assert models.get("mystery").client is model.client  # type: ignore[attr-defined]
    monkeypatch.setenv("OPENAI_BASE_URL", URL)  # another endpoint has prices of its own
    models = open_models(UserSettings())
    assert (models.endpoint("gpt-5"), models.get("gpt-5").price) == (URL, None)


@pytest.mark.parametrize("url", ["host/v1", "http://[host/v1", "http://é..x/v1", "http://me:password@host/v1"])
def test_a_bad_address_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(UsageError, match="environment variable OPENAI_BASE_URL: expected a URL"):
        open_models(UserSettings()).get("m")


@pytest.mark.parametrize("proxy", ["socks5://me:password@127.0.0.1:9", "ftp://me:password@host", "http://[::bad"])
def test_a_proxy_that_cannot_be_used_is_named_at_once(at: Opening, monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(UsageError, match="expected a proxy that can be used") as caught:
        at(URL).get("m")
    assert "password" not in str(caught.value)


def test_settings_name_price_and_context_and_keys_are_secrets_and_not_inherited(at: Opening) -> None:
    models = at(URL, "price = {input = 2, output = 3}\ncontext = 2000")
    assert models.secrets == ()
    model = models.get("m")
    assert (model.price, model.context) == (Price(prompt=2, cached=2, completion=3), 2000)
    models.forget_keys()
    assert models.secrets == (KEY,)
    assert KEY not in subprocess.run(["env"], capture_output=True, text=True, check=True).stdout
    assert "TEST_KEY" not in os.environ


def test_a_command_prints_the_key_once(settings: Settings, tmp_path: Path) -> None:
    command = f"echo x >> {tmp_path}/log; echo key-from-command"
    table = f'base_url = "{URL}"\nkey_command = "{command}"\n'
    models = open_models(settings(f"[models.a]\n{table}[models.b]\n{table}"))
    models.get("a"), models.get("b")
    assert models.secrets == ("key-from-command",)
    assert (tmp_path / "log").read_text() == "x\n"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("exit 3", "failed with 3; run it"),
        ("true", "printed nothing"),
        ("echo 'two words'", "a key of plain characters"),
    ],
)
def test_a_command_without_a_key(settings: Settings, command: str, said: str) -> None:
    models = open_models(settings(f'[models.m]\nkey_command = "{command}"'))
    with pytest.raises(CredentialError, match=said) as caught:
        models.get("m")
    assert "two words'," not in str(caught.value)


def test_a_missing_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("TEST_KEY", raising=False)
    with pytest.raises(CredentialError, match="the environment variable TEST_KEY, which is not set"):
        open_models(UserSettings.model_validate({"models": {"big": {"key_env": "TEST_KEY"}}})).get("big")
    monkeypatch.setenv("EVOGIT_SETTINGS", "/nonexistent/settings.toml")
    expected = "no model 'gpt-5', as there are no settings: /nonexistent/settings.toml .* set .* OPENAI_API_KEY"
    with pytest.raises(CredentialError, match=expected):
        open_models(UserSettings()).get("gpt-5")
    with pytest.raises(UsageError, match="expected a model"):
        open_models(UserSettings()).get("")
    known = UserSettings.model_validate({"models": {"big": {}}})
    with pytest.raises(CredentialError, match=r"no model 'bgi' in /nonexistent/settings.toml; did you mean \"big\"\?"):
        open_models(known).get("bgi")


def test_the_key_for_openai_goes_nowhere_else(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    models = open_models(settings(f'[models.local]\nbase_url = "{URL}"'))
    model: Any = models.get("local")
    assert model.client.api_key == "none"
    assert models.secrets == ()
