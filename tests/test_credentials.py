"""What counts as a credential: names of files, forms of tokens; and what redaction leaves of a text."""

from __future__ import annotations

import json
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evogit.credentials import REDACTED, Redactor, is_secret_name, tokens, values

from .clock import assert_grows_linearly

MIXED = "q7Zk2mWv9XtB4nLr8PsDq7Zk2mWv9XtB4nLr8PsD"

PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{MIXED}\n{MIXED}==\n-----END RSA PRIVATE KEY-----\n"

TOKENS = (
    PEM,
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{MIXED}\n-----END OPENSSH PRIVATE KEY-----\n",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n{MIXED}\n-----END PGP PRIVATE KEY BLOCK-----",
    "AKIA" + MIXED.upper()[:16],
    f"ghp_{MIXED[:36]}",
    f"github_pat_{MIXED}",
    f"glpat-{MIXED[:20]}",
    f"xoxb-{MIXED}",
    f"sk-{MIXED}",
    f"sk-proj-{MIXED}",
    f"sk-ant-api03-{MIXED}",
    f"AIza{MIXED[:35]}",
    f"sk_live_{MIXED}",
    f"npm_{MIXED[:36]}",
    f"pypi-{MIXED}",
    f"hf_{MIXED[:34]}",
    f"hvs.{MIXED}",
    f"eyJ{MIXED}.eyJ{MIXED}.{MIXED}",
)

AROUND = ("{}", "token = '{}'", '{{"a": "{}"}}', "x\n{}\ny", "\x1b[31m{}\x1b[0m", "+{}", "https://u:{}@host/")


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:16])
def test_tokens_of_known_forms_are_found_and_redacted_wherever_they_stand(token: str) -> None:
    core = MIXED[4:14] if MIXED[4:14] in token else token[4:]
    for around in AROUND:
        text = around.format(token)
        for said in (text, json.dumps(text)):
            assert tokens(said.encode()), said
            assert core not in Redactor().text(said)
        assert tokens(text.encode("utf-16"))
        assert isinstance(json.loads(Redactor().text(json.dumps([text, "after"]))), list)


@pytest.mark.parametrize(
    "text",
    [
        'if b"-----BEGIN PRIVATE KEY-----" in data: raise ValueError',
        "a `-----BEGIN RSA PRIVATE KEY-----` line, then the key, then its end",
        "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
        "sk-estimator-doc-link sk-toggleable__content task-1234567890abcdefgh risk-based-approaches-2024-edition",
        "sk-ecdsa-sha2-nistp256@openssh.com sk-ssh-ed25519@openssh.com",
        "npm_config_registry hf_hub_download hf_CausalLMOutputWithPast ghp_ AKIA AKIAIO sk-",
        "3f786850e387550fdab836ed7e6dc881de23001b",
    ],
)
def test_what_only_looks_like_a_token_stays(text: str) -> None:
    assert not tokens(text.encode())
    assert Redactor().text(text) == text


SECRET = (
    *(".env", ".env.local", ".env.production", "prod.env", "id_rsa", "id_ed25519", ".npmrc", ".pypirc", ".netrc"),
    *("_netrc", ".git-credentials", ".pgpass", ".htpasswd", ".docker/config.json", ".aws/credentials", ".kube/config"),
    *("kubeconfig", "credentials.json", "service-account-prod.json", "terraform.tfvars", "a.tfstate", "server.pem"),
    *("tls.key", "store.p12", "store.jks", "a.kdbx", ".vault-token", ".ssh/id_work", ".ENV", "ID_RSA", ".env."),
    "\uff0eenv",
)

OPEN = (
    *(".env.example", ".env.sample", "example.env", ".env.template", "environment.py", "env", "id_rsa.pub", "rsa.py"),
    *(".ssh/config", "config.json", "credentials.py", "key.py", "keys.json", "docker/config.json", "pem.go"),
    *("service.json", "variables.tf", "README.md", "src/aws/config", "secrets.py"),
)


@pytest.mark.parametrize("folder", ["", "deploy/", "a/b/"])
def test_secret_files_are_known_by_exact_names_in_any_folder(folder: str) -> None:
    assert [name for name in SECRET if not is_secret_name(folder + name)] == []
    assert [name for name in OPEN if is_secret_name(folder + name)] == []


def test_values_of_secret_files_are_redacted_but_no_common_words() -> None:
    content = (
        b"export DB_PASSWORD='hunter2'\nDB_HOST=localhost\nDEBUG=true\nKEY=postgres\nSALT: correct horse battery\n"
    )
    redactor = Redactor({".env": content})
    said = redactor.text("connecting to localhost with hunter2: true, postgres, correct horse battery")
    assert said == f"connecting to localhost with {REDACTED}: true, postgres, {REDACTED}"


def test_each_line_of_a_secret_file_is_a_value() -> None:
    assert {MIXED, f"MIIE{MIXED}"} <= {value.rstrip("=") for value in values(PEM.encode())}


def test_of_an_ordinary_file_with_a_token_only_that_is_redacted() -> None:
    key = PEM.replace("\n", "\\n")
    redactor = Redactor(
        {"src/settings.py": f"def settings_of_users():\n    return 'hf_{MIXED}'\nKEY = '{key}'\n".encode()}
    )
    assert redactor.text("    def settings_of_users(): boom") == "    def settings_of_users(): boom"
    assert MIXED not in redactor.text(f"  1 | hf_{MIXED[:20]}\n  2 | MIIE{MIXED}\n  3 | {MIXED}==")


def test_a_file_of_many_values_leaves_no_other_file_out() -> None:
    state = json.dumps(
        [{"id": f"i-{n:017x}", "arn": f"arn:aws:ec2:eu-1:0123:instance/i-{n:017x}"} for n in range(4000)]
    )
    files = {f"{place}/prod.tfstate": state.replace("0123", place).encode() for place in string.ascii_letters}
    redactor = Redactor({**files, "web/.env": b"DB_PASSWORD=c4nary-of-the-web\n"})
    assert redactor.text("it is c4nary-of-the-web now") == f"it is {REDACTED} now"
    assert redactor.text(f"x i-{7:017x} y") == f"x {REDACTED} y"


@given(st.lists(st.text("AB", min_size=8, max_size=12), min_size=1, max_size=6), st.text("AB", max_size=60))
def test_all_that_any_value_covers_is_redacted(found: list[str], text: str) -> None:
    redactor = Redactor({".env": "".join(f"KEY={value}\n" for value in found).encode()})
    covered = {
        at
        for value in {*found, *(f"KEY={value}" for value in found)}
        for begin in range(len(text))
        if text.startswith(value, begin)
        for at in range(begin, begin + len(value))
    }
    left = "".join(letter for at, letter in enumerate(text) if at not in covered)
    assert redactor.text(text).replace(REDACTED, "") == left


@pytest.mark.parametrize("said", ["arn:aw", "arn:aws:ec2:eu-1:0123:instance/i-00000", "nothing of that kind. "])
def test_many_values_are_looked_for_in_linear_time(said: str) -> None:
    def work(size: int) -> None:
        lines = (f'"arn": "arn:aws:ec2:eu-1:0123:instance/i-{n:017x}",' for n in range(size))
        Redactor({"prod.tfstate": "\n".join(lines).encode()}).text(said * size)

    assert_grows_linearly(work, 250)


def test_bytes_of_any_encoding_are_redacted_and_kept_otherwise() -> None:
    redactor = Redactor({".env": f"TOKEN={MIXED}".encode()})
    assert redactor.data(b"\xff\0" + MIXED.encode() + b"\xfe") == b"\xff\0" + REDACTED.encode() + b"\xfe"


@given(st.text(st.sampled_from('-BEGINPRVATKYgh_pskejJ.\\n"\n :=aA0'), max_size=400))
def test_redaction_leaves_json_json(text: str) -> None:
    json.loads(Redactor().text(json.dumps({"text": text, "list": [text, "0123456789abcdef01234567"], text: 1})))


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA\n",
        "-----BEGIN PRIVATE KEY-----\n" + "Version: ",
        "sk-a",
        "sk--",
        "eyJaaaaaaaaaaaa.eyJ",
        "eyJ",
        ".eyJ",
        "secret_access_key = ",
        "hooks.slack.com/services/",
        "export a='",
    ],
)
def test_looking_for_tokens_takes_linear_time(piece: str) -> None:
    def work(size: int) -> None:
        text = piece * size + ".eyJ PRIVATE KEY sk-"
        tokens(text.encode())
        Redactor({".env": text.encode()[:20_000]}).text(text)

    assert_grows_linearly(work, 1000)


def test_a_long_text_of_random_letters_holds_none() -> None:
    rng = random.Random(1)
    text = "".join(rng.choices(string.ascii_letters + string.digits + "-_=/+ \n", k=200_000))
    assert not tokens(text.encode())
