"""Presets of coding programs: what they say, and the real programs in real sandboxes, asking a scripted model."""

from __future__ import annotations

import faulthandler
import json
import re
import shutil
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evogit.agents.coder import Coder
from evogit.agents.editor import Editor
from evogit.agents.programs.presets import PRESETS, Preset
from evogit.config.user_settings import load_user_settings
from evogit.llm.registry import open_models
from evogit.sandbox import Environment, Limits
from evogit.sandbox.archive import pack
from evogit.sandbox.providers.bubblewrap import Bubblewrap
from tests.coding_clis import Line, answers, lean
from tests.openai_server import serve

from .conftest import Lab

PORT = 8400  # of the model: a sandbox has a loopback interface of its own

TESTS = Path(__file__).parents[1]
PROGRAM = "A = 1\n\n\ndef value(x):\n    return A * x\n"
BRIEF = "# Task\n\nBring value(2) in program.py to 4. You may change program.py.\n"
EVALUATE = "#!/bin/sh\npython3 -c 'import program; print(f\"score {-abs(program.value(2) - 4)}\")'\n"
GIT = "git init -q -b work && git add -A && git -c user.name=e -c user.email=e@e commit -qm parent"
PATHS = {"claude": "/v1/messages", "codex": "/v1/responses"}  # where a program asks; others do at /v1/chat/completions


def test_placeholders_are_those_that_are_promised() -> None:
    known = {"url", "model", "brief", "workspace", "home"}
    for preset in PRESETS.values():
        texts = [*preset.argv, *preset.env.values(), *preset.files.values()]
        asked = {name for text in texts for name in re.findall(r"\{(\w+)\}", text)}
        assert {"url", "model", "brief"} <= asked <= known
        assert any("evaluate" in word for word in preset.argv)
        assert bool(preset.packages) != bool(preset.needs)
    assert {name: preset.name for name, preset in PRESETS.items()} == {name: name for name in PRESETS}


def test_files_can_be_read_once_a_model_is_in_them() -> None:
    readers = {".json": json.loads, ".toml": tomllib.loads}
    for preset in PRESETS.values():
        for path, text in filled(preset, Path("/box"), "vendor/model-2.5:free").files.items():
            said = json.dumps(readers[Path(path).suffix](text))
            assert ("vendor/model-2.5:free" in said) == ("{model}" in preset.files[path])


@pytest.mark.parametrize("kind", [Editor, Coder])
async def test_a_scripted_model_knows_our_own_agents_too(
    kind: type[Editor | Coder], lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve([answers(Line("main.py", "VALUE = ", iter([5])))]) as server:
        settings = tmp_path / "settings.toml"
        settings.write_text(f'[models.m]\nbase_url = "{server.url}"\nkey_env = "TEST_KEY"\n')
        monkeypatch.setenv("TEST_KEY", "sk-test-0123456789")
        models = open_models(load_user_settings({"EVOGIT_SETTINGS": str(settings)}))
        bred = await lab.breed(kind(models.get("m")), lab.seed())
        await models.close()
    assert (lab.files(bred.tree)["main.py"], bred.title) == (b"VALUE = 5\n", "another value")


def filled(preset: Preset, box: Path, model: str = "scripted") -> Preset:
    """A preset with all placeholders filled in, for a workspace `work` and a HOME `house` in a folder."""
    known = {"url": f"http://127.0.0.1:{PORT}", "model": model, "brief": "BRIEF.md"}
    known |= {"workspace": str(box / "work"), "home": str(box / "house")}

    def fill(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: known.get(found[1], found[0]), text)

    def fill_all(texts: Mapping[str, str]) -> dict[str, str]:
        return {name: fill(text) for name, text in texts.items()}

    return replace(preset, argv=tuple(map(fill, preset.argv)), env=fill_all(preset.env), files=fill_all(preset.files))


def edited(preset: Preset) -> tuple[str, list[dict[str, Any]]]:
    """Have a program make the edit of a scripted model: what it printed, and the requests that the model got."""
    server = {f"tests/{name}.py": TESTS / f"{name}.py" for name in ("coding_clis", "openai_server", "protocol_replies")}
    files = {path: file.read_bytes() for path, file in server.items()}
    files |= {"work/program.py": PROGRAM.encode(), "tools/evaluate": EVALUATE.encode(), "tmp/here": b""}
    limits = Limits(wall=100, cpu=100, total=300, memory=preset.memory, processes=preset.processes, disk=1 << 30)
    sandbox = Bubblewrap(Environment(packages=preset.packages))
    with sandbox.open(pack(files), limits) as session:

        def shell(command: str) -> str:
            done = session.run(["sh", "-c", command])
            assert done.code == 0, done.stderr.decode()
            return done.stdout.decode()

        box = Path(shell(f"chmod +x tools/evaluate; cd work; {GIT}; cd ..; pwd").strip())
        preset = filled(preset, box)
        found = {f"house/{path}": text.encode() for path, text in preset.files.items()}
        session.run(["true"], files={"work/BRIEF.md": BRIEF.encode(), "house/here": b"", **found})
        session.start(["python3", "-m", "tests.coding_clis", "--port", str(PORT), "program.py", "A = "])
        stream = session.connect(PORT, patience=20)
        assert isinstance(stream, socket.socket), stream
        stream.close()
        path = f"{box}/tools:/usr/local/bin:/usr/bin:/bin"
        given = {"PATH": path, "HOME": f"{box}/house", "TMPDIR": f"{box}/tmp", "PWD": f"{box}/work", **preset.env}
        variables = [f"{name}={value}" for name, value in given.items()]
        done = session.run(["env", "-C", f"{box}/work", *variables, *preset.argv], out=["requests.jsonl"])
        said = (done.stdout + done.stderr).decode()
        assert done.code == 0, said
        assert shell("cat work/program.py") == PROGRAM.replace("A = 1", "A = 2"), said
        left = {line[3:] for line in shell("git -C work status --porcelain").splitlines()} - {"program.py", "BRIEF.md"}
    sandbox.close()
    assert [name for name in left if not any(Path(name).match(junk) for junk in preset.junk)] == []
    return said, [json.loads(line) for line in done.files["requests.jsonl"].splitlines()]


def check(preset: Preset) -> None:
    said, requests = edited(preset)
    assert "score" in said, "the transcript shows what was evaluated"
    asked = [request for request in requests if request["body"]]
    assert {request["path"].partition("?")[0] for request in asked} == {PATHS.get(preset.name, "/v1/chat/completions")}
    assert {request["body"]["model"] for request in asked} == {"scripted"}
    assert "score" in json.dumps(asked[-1]["body"]), "the model learns what was evaluated"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aider", "mini"])
def test_programs_from_pip_change_a_line_and_evaluate_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    faulthandler.cancel_dump_traceback_later()  # pip may take minutes, once
    monkeypatch.setenv("PIP_NO_DEPS", "1")
    preset = PRESETS[name]
    check(replace(preset, packages=lean(), env={**preset.env, "AIDER_MAP_TOKENS": "0"}))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, preset in PRESETS.items() if not preset.packages])
def test_programs_from_elsewhere_change_a_line_and_evaluate_it(name: str) -> None:
    preset = PRESETS[name]
    program = shutil.which(preset.argv[0]) or ""
    if not program.startswith("/usr/"):
        pytest.skip(f"{name} is not installed for all users; {preset.needs}")
    check(replace(preset, argv=(program, *preset.argv[1:])))
