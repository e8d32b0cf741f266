"""What a person is told of a task before it fails for want of it."""

from __future__ import annotations

import pytest

from evogit.adopt.notes import told_needs


def told(path: str, text: str) -> list[str]:
    files = {path: (text.encode(), 0o100644)}
    return list(told_needs(files, files))


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("a.py", "import torch\nimport triton.language as tl\n", "a graphics processor (triton in a.py)"),
        ("a.py", "def f():\n    torch.cuda.synchronize()\n", "a graphics processor (torch.cuda in a.py)"),
        ("a.py", 'gen = torch.Generator(device="cuda")\n', "a graphics processor (cuda in a.py)"),
        ("a.cu", "__global__ void add(float* a) {}\n", "a graphics processor (__global__ in a.cu)"),
        ("a.py", "from shinka.llm.client import get_client\n", "a language model (shinka.llm in a.py)"),
        ("a.py", 'key = os.environ["OPENAI_API_KEY"]\n', "a language model (OPENAI_API_KEY in a.py)"),
        ("a.py", 'run(\n    ["docker", "info"])\n', "it starts docker"),
        ("a.sh", "if true; then\n    docker compose up -d\nfi\n", "it starts docker"),
        ("a.py", 'BIN = os.path.join(HOME, "wolframscript")\n', "it starts wolframscript"),
        ("download.sh", "curl -o data/cost.csv $URL\n", "download.sh downloads cost.csv"),
        ("requirements.txt", "numpy\na-b @ git+https://host/a\n", "a-b @ git+https://host/a: what has an address"),
    ],
)
def test_what_a_sandbox_will_not_have_is_told_before(path: str, text: str, said: str) -> None:
    [found] = told(path, text)
    assert said in found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "if torch.cuda.is_available():\n    torch.cuda.synchronize()\n"),
        ("a.py", "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n"),
        (
            "a.py",
            '"""Like triton, docker and openai."""\nLANGUAGES = {"go": 1}\nMOVES = ["go", "stop"]\nmodel = "OPENAI"\n',
        ),
        ("a.py", '"""Start it by\n\n    docker run image\n"""\n'),
        ("get.sh", "curl -o data/cost.csv $URL\n"),
        ("requirements.txt", "numpy>=1\n# https://host\n-r more.txt\n"),
    ],
)
def test_what_may_do_without_is_not_told(path: str, text: str) -> None:
    assert told(path, text) == []
