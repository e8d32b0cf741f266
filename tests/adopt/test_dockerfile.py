"""What is read of an image: where its files lie, its packages, and what needs `docker build`."""

from __future__ import annotations

import pytest

from evogit.adopt.dockerfile import Recipe, read_dockerfile
from evogit.adopt.foreign_task import PLAIN, File

BESIDE = ("fit.py", "util.py", "words.txt", "data/a.csv", "data/b.csv", "data/deep/c.csv", "src/main.py")


def read(text: str) -> Recipe:
    files: dict[str, File] = {path: (path.encode(), PLAIN) for path in BESIDE}
    return read_dockerfile({**files, "Dockerfile": (text.encode(), PLAIN)}, "/app")


def test_packages_places_and_the_working_folder_are_read() -> None:
    recipe = read(
        "FROM python\n# RUN pip install no\nWORKDIR /a\nWORKDIR b/\n"
        'RUN apt-get update \\\n  # a comment\n  && apt-get install -y --no-install-recommends gcc "g++" > /dev/null\n'
        "RUN pip3 install -q --index-url https://example.org/simple 'numpy>=2' -r requirements.txt scipy; echo done\n"
        "RUN --mount=type=cache,target=/x DEBIAN_FRONTEND=no apt-get install jq 2>&1  # pip install no\n"
        'RUN ["pip", "install", "rich"]\nENV V=1.2\nRUN pip install "pandas==${V}" $OTHER\n'
    )
    assert recipe.workdir == "/a/b"
    assert recipe.packages == ("numpy>=2", "scipy", "rich", "pandas==1.2")
    [note] = recipe.notes
    assert "gcc, g++, jq" in note


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("COPY fit.py .", "/app/fit.py"),
        ("WORKDIR /app\nCOPY fit.py /app", "/app/fit.py"),
        ("COPY fit.py other.py", "/app/other.py"),
        ("RUN mkdir -p /data\nCOPY fit.py /data", "/data/fit.py"),
        ("COPY words.txt /data/\nCOPY fit.py /data", "/data/words.txt /data/fit.py"),
        ("COPY --chown=1000:1000 --chmod=755 fit.py .", "/app/fit.py"),
        ('COPY ["fit.py","."]', "/app/fit.py"),
        ("copy\tfit.py /app/", "/app/fit.py"),
        ("COPY /src ../other", "/other/main.py"),
        ("COPY fit.py util.py /x/", "/x/fit.py /x/util.py"),
        ("COPY *.py ./", "/app/fit.py /app/util.py"),
        ("COPY [!f]it.py f?t.py here/", "/app/here/fit.py"),
        ("COPY data/*.csv x/", "/app/x/a.csv /app/x/b.csv"),
        ("ENV HOME_OF=/srv\nWORKDIR ${HOME_OF}\nCOPY fit.py .", "/srv/fit.py"),
        ("ENV A=/one B=$A/two\nENV C=$A/three\nCOPY fit.py $B/\nCOPY fit.py $C/", "/two/fit.py /one/three/fit.py"),
        ("WORKDIR /b\nCOPY . .\nFROM y\nCOPY fit.py .", "/app/fit.py"),
    ],
)
def test_copied_files_lie_where_docker_has_them(text: str, paths: str) -> None:
    assert sorted(read(f"FROM python AS one\n{text}\n").files) == sorted(paths.split())


def test_the_variables_of_the_image_are_read() -> None:
    recipe = read("FROM alpine\nENV B=2 PATH=/own/bin:$PATH PYTHONPATH=/src:${PYTHONPATH}\n")
    path = "/own/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert recipe.environment == {"B": "2", "PATH": path, "PYTHONPATH": "/src:"}


@pytest.mark.parametrize(
    "text",
    [
        "RUN python3 gen.py --n 2",
        "RUN cat a b > /app/hello.txt",
        "RUN cp fit.py /k",
        "RUN rm -f fit.py",
        "RUN chmod 600 fit.py",
        "RUN python3 -m venv /opt/v",
        "RUN echo $(date) > x",
        "RUN npm ci --omit dev",
        f"RUN make {'x' * 90}",
        "COPY gone.py .",
        "COPY --from=builder /out/tool .",
        "COPY --exclude=*.csv data x",
        "COPY <<EOF /x\nCOPY fit.py /no\nEOF",
        "RUN <<-EOF\n\tCOPY fit.py /no\n\tEOF",
        "ADD https://example.org/x.bin .",
        "ADD fit.tar.gz .",
        "ARG V=1",
        "FROM debian",
        "FROM own-agents:latest",
    ],
)
def test_what_needs_docker_is_told_and_not_guessed(text: str) -> None:
    recipe = read(f"FROM python\n{text}\nCOPY util.py .\n")
    [*_, note] = recipe.notes
    assert "docker build" in note
    assert "/no" not in recipe.files
    assert recipe.files["/app/util.py"] == (b"util.py", PLAIN)


@pytest.mark.parametrize(
    "text",
    [
        "RUN set -eux; pip install x > /tmp/log 2>&1 && rm -rf /var/lib/apt/lists/* && mkdir -p /a && cd /a",
        "RUN python -m pip install x && uv pip install z && curl -LsSf https://example.org/uv/install.sh | sh",
        "RUN apt-get install -y x || true; useradd me && git config --global a b; echo done",
        "FROM docker.io/library/ubuntu@sha256:12",
        "COPY fit.py .\nRUN chmod +x fit.py",
    ],
)
def test_commands_that_leave_nothing_to_miss_are_not_told(text: str) -> None:
    begin = "" if text.startswith("FROM") else "FROM python:3.12-slim\n"
    assert [note for note in read(f"{begin}{text}\n").notes if "docker build" in note] == []


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("RUN printf 'a; %%\\n' \\\n > x.txt && printf \"b\\n\" >> x.txt", {"/app/x.txt": "a; %\nb\n"}),
        ("ENV A=1\nRUN cd /srv; printf '%s-%s\\n' $A 2 \"$A\" 3 > x", {"/srv/x": "1-2\n1-3\n"}),
        ("RUN echo 'a b' > /x/y.txt", {"/x/y.txt": "a b\n"}),
        ('RUN printf "$(date)" > x; printf `date` > y; echo a | cat > z; printf $B > u; (echo v > v)', {}),
        ("RUN echo a > /dev/null && echo b > /etc/apt/x", {}),
    ],
)
def test_printed_files_are_read(text: str, files: dict[str, str]) -> None:
    assert {path: data.decode() for path, (data, _) in read(f"FROM python\n{text}\n").files.items()} == files


def test_empty_folders_are_read() -> None:
    recipe = read(
        "FROM python\nRUN mkdir -p /out/a /app/b /tmp /x{1,2} full && mkdir /opt\nCOPY fit.py full/\nCOPY util.py .\n"
    )
    assert recipe.folders == ("/app/b", "/out/a")
