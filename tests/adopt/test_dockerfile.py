from __future__ import annotations

import pytest

from evogit.adopt.dockerfile import Recipe, read_dockerfile
from evogit.adopt.foreign_task import EXECUTABLE, PLAIN, File

BESIDE = ("fit.py", "util.py", "words.txt", "data/a.csv", "data/b.csv", "data/deep/c.csv", "src/main.py")


def read(text: str) -> Recipe:
    files: dict[str, File] = {path: (path.encode(), PLAIN) for path in BESIDE}
    return read_dockerfile({**files, "Dockerfile": (text.encode(), PLAIN)}, "/app")


def test_it_tells_packages_places_and_the_working_folder() -> None:
    recipe = read(
        "FROM x\n# RUN pip install no\nWORKDIR /a\nWORKDIR b/\n"
        'RUN apt-get update \\\n  # a comment\n  && apt-get install -y --no-install-recommends gcc "g++" > /dev/null\n'
        "RUN pip3 install -q --index-url https://example.org/simple 'numpy>=2' -r requirements.txt scipy; echo done\n"
        "RUN --mount=type=cache,target=/x DEBIAN_FRONTEND=no apt-get install jq 2>&1  # pip install no\n"
        'RUN ["pip", "install", "rich"]\nARG V=1.2\nRUN pip install "pandas==${V}" $OTHER\n'
    )
    assert recipe.workdir == "/a/b"
    assert recipe.packages == ("numpy>=2", "scipy", "rich", "pandas==1.2")
    assert recipe.system == ("gcc", "g++", "jq")


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("COPY fit.py .", "/app/fit.py"),
        ("COPY fit.py ./", "/app/fit.py"),
        ("WORKDIR /app\nCOPY fit.py /app", "/app/fit.py"),
        ("COPY fit.py other.py", "/app/other.py"),
        ("COPY fit.py /data", "/data"),
        ("RUN mkdir -p /data\nCOPY fit.py /data", "/data/fit.py"),
        ("COPY words.txt /data/\nCOPY fit.py /data", "/data/words.txt /data/fit.py"),
        ("COPY --chown=1000:1000 --chmod=755 fit.py .", "/app/fit.py"),
        ("ADD fit.py .", "/app/fit.py"),
        ('COPY ["fit.py","."]', "/app/fit.py"),
        ('COPY --link [ "fit.py" , "util.py" , "x/" ]', "/app/x/fit.py /app/x/util.py"),
        ("copy\tfit.py /app/", "/app/fit.py"),
        ("COPY /src ../other", "/other/main.py"),
        ("COPY fit.py util.py /x/", "/x/fit.py /x/util.py"),
        ("COPY *.py ./", "/app/fit.py /app/util.py"),
        ("COPY [!f]it.py [^u]it.py f?t.py here/", "/app/here/fit.py"),
        ("COPY data/*.csv x/", "/app/x/a.csv /app/x/b.csv"),
        ("COPY d*/ x/", "/app/x/a.csv /app/x/b.csv /app/x/deep/c.csv"),
        ("ENV HOME_OF=/srv\nWORKDIR ${HOME_OF}\nCOPY fit.py .", "/srv/fit.py"),
        ("ENV A /one two\nCOPY fit.py $A/", "/one two/fit.py"),
        ("ENV A=/one B=$A/two\nENV C=$A/three\nCOPY fit.py $B/\nCOPY fit.py $C/", "/two/fit.py /one/three/fit.py"),
        ("RUN echo $((1<<3)) <<never\nCOPY fit.py .", "/app/fit.py"),
        ("WORKDIR /b\nCOPY . .\nFROM y\nCOPY fit.py .", "/app/fit.py"),
    ],
)
def test_what_it_copies_is_where_docker_has_it(text: str, paths: str) -> None:
    recipe = read(f"FROM python AS one\n{text}\n")
    expected = paths.replace("one two", "one\ttwo").split(" ")
    assert sorted(path.replace("one two", "one\ttwo") for path in recipe.files) == sorted(expected)


def test_it_tells_the_variables_of_the_image_and_no_others() -> None:
    recipe = read(
        "FROM debian:13 AS one\nENV A=1 GONE=1\nFROM alpine\nARG V=2\n"
        "ENV B=$V PATH=/own/bin:$PATH PYTHONPATH=/src:${PYTHONPATH}\n"
    )
    path = "/own/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert recipe.environment == {"B": "2", "PATH": path, "PYTHONPATH": "/src:"}
    assert "several stages" in "".join(recipe.notes)


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("RUN python3 -m venv --prompt x /opt/v && /opt/v/bin/pip install y", ["/opt/v"]),
        ("RUN uv venv -p 3.12 && uv venv --seed tools", ["/app/.venv", "/app/tools"]),
    ],
)
def test_it_tells_the_virtual_environments_of_the_image(text: str, places: list[str]) -> None:
    recipe = read(f"FROM python AS one\n{text}\n")
    assert (sorted(recipe.virtual), recipe.files, recipe.notes) == (places, {}, ())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "RUN python3 gen.py --n 2 && cat a b > /app/hello.txt",
            '"python3 gen.py --n 2", "cat a b > /app/hello.txt"',
        ),
        ("RUN git init && git config user.name x && git add -A", '"git init", "git add -A"'),
        ("RUN npm ci  --omit dev 2>/dev/null || true", '"npm ci --omit dev 2>/dev/null"'),
        ("RUN curl -sSf https://example.org/x.sh | sh -s -- -y", '"curl -sSf https://example.org/x.sh | sh -s -- -y"'),
        ("RUN a; b; c; d; e; f", '"a", "b", "c", "d" and 2 more'),
        (f"RUN make {'x' * 90}", f'"make {"x" * 55}..."'),
    ],
)
def test_commands_that_are_not_done_here_are_told(text: str, told: str) -> None:
    said = f"its image runs {told}, which is not done here: files that it makes are missing"
    assert read(f"FROM python\n{text}\n").notes == (said,)


@pytest.mark.parametrize(
    "text",
    [
        "RUN set -eux; pip install x > /tmp/log 2>&1 && rm -rf /tmp/* && mkdir -p /a && chmod +x /b && cd /a",
        "RUN python -m pip install x && python3 -m venv /v && /v/bin/pip install y && uv pip install z && which uv",
        "RUN curl -LsSf https://example.org/uv/install.sh | sh && ln -s /usr/bin/python3 /usr/bin/python",
        "RUN echo done && [ -e /x ] || true\nRUN find . -name '*.pyc' -delete; useradd me && git config --global a b",
        'RUN ["pip", "install", "x"]\nRUN for i in 1 2; do echo $i; done; if [ -e /x ]; then rm /x; fi',
    ],
)
def test_of_commands_that_leave_nothing_to_miss_nothing_is_told(text: str) -> None:
    assert read(f"FROM python:3.12-slim\n{text}\n").notes == ()


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("RUN echo 'a; $b' \\\n  c > x.txt && echo -n \"d\\te\" >> x.txt", {"/app/x.txt": "a; $b c\nd\te"}),
        ("ENV A=1\nRUN cd /srv; printf '%s-%d\\n' $A 2 \"$A\" 3 > x; : > y", {"/srv/x": "1-2\n1-3\n", "/srv/y": ""}),
        ('RUN echo "$(date)" > x; echo `date` > y; echo a | cat > z; echo $B > u; (echo v > v); cp no x', {}),
        ("RUN echo a > /dev/null && echo b > /etc/apt/x", {}),
    ],
)
def test_files_are_those_that_simple_commands_leave(text: str, files: dict[str, str]) -> None:
    assert {path: data.decode() for path, (data, _) in read(text).files.items()} == files


@pytest.mark.parametrize(
    ("base", "known"),
    [
        ("python:3.12", True),
        ("docker.io/library/ubuntu@sha256:12", True),
        ("example.org/team/ubuntu:1", False),
        ("own-agents:latest", False),
    ],
)
def test_an_image_that_begins_as_somebodys_is_told(base: str, known: bool) -> None:
    notes = read(f"ARG BASE={base}\nFROM $BASE AS one\n").notes
    assert notes == (() if known else (f"its image begins as {base}: what that brings is not known here, and missing",))


def test_it_tells_the_folders_that_are_empty() -> None:
    recipe = read("FROM python\nRUN mkdir -p /out/a /app/b /tmp /x{1,2} full && mkdir /opt\nCOPY fit.py full/\n")
    assert recipe.folders == ("/app/b", "/out/a")


def test_a_file_that_it_touches_is_there() -> None:
    recipe = read("FROM python\nCOPY fit.py .\nRUN touch fit.py __init__.py && touch -d @0 $X\n")
    assert recipe.files == {"/app/fit.py": (b"fit.py", PLAIN), "/app/__init__.py": (b"", PLAIN)}


@pytest.mark.parametrize(
    ("text", "run"),
    [
        ("COPY --chmod=755 fit.py .", "fit.py"),
        ("COPY --chmod=u+x,g-w fit.py util.py ./\nCOPY --chmod=644 util.py .", "fit.py"),
        ("COPY fit.py util.py ./\nRUN chmod +x fit.py /gone && chmod -R a-w .", "fit.py"),
        (
            "COPY *.py ./\nRUN chmod 0755 /app/f*.py && chmod a+x util.py\nRUN chmod -x util.py; chmod 600 util.py",
            "fit.py",
        ),
        ("COPY data data\nRUN chmod -R 700 data/d*", "data/deep/c.csv"),
        ("COPY data data\nCOPY src src\nRUN chmod +x data", ""),
        ("RUN chmod +x fit.py\nCOPY fit.py .", ""),
    ],
)
def test_what_may_be_run_is_as_the_image_has_it(text: str, run: str) -> None:
    found = [path for path, (_, mode) in read(f"FROM python\n{text}\n").files.items() if mode == EXECUTABLE]
    assert found == [f"/app/{path}" for path in run.split()]


def test_what_cannot_be_read_is_told() -> None:
    recipe = read(
        "FROM x\nCOPY gone.py .\nCOPY --from=builder /out/tool .\nADD https://example.org/x.bin .\n"
        "COPY fit.py $WHERE/\nRUN uvx never-heard-of --help"
    )
    said = "\n".join(recipe.notes)
    assert "copies gone.py: no" in said
    assert "copies /out/tool of builder: no" in said
    assert "copies https://example.org/x.bin: no" in said
    assert "$WHERE" in said
    assert "`uvx never-heard-of`" in said
    assert recipe.packages == ()


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("COPY <<EOF /x\nCOPY fit.py /no\nEOF", "here-documents"),
        ("RUN <<-EOF\n\tmake\n\tEOF", "here-documents"),
        ("COPY --exclude=*.csv data x", "--exclude"),
        ("COPY --parents data x", "--parents"),
        ("FROM debian\nCOPY --from=0 fit.py .", "several stages"),
        ("COPY --from=0 fit.py .", "of 0"),
        ("RUN cp fit.py /k", '"cp fit.py /k"'),
    ],
)
def test_what_takes_docker_is_told_and_not_guessed(text: str, note: str) -> None:
    recipe = read(f"FROM python\n{text}\nCOPY util.py .\n")
    assert note in "\n".join(recipe.notes)
    assert "/no" not in recipe.files
    assert "/app/util.py" in recipe.files


def test_a_file_that_it_removes_is_not_there() -> None:
    assert list(read("FROM python\nCOPY *.py ./\nRUN rm -f fit.py\n").files) == ["/app/util.py"]
