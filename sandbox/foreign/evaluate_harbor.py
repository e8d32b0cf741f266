"""Evaluates with a Harbor verifier: `evaluate_harbor.py WORKDIR FOLDER VARIABLES [PLACE ...]`.

This runs `tests/test.sh`; the score is the reward that it leaves. VARIABLES are those of the image, a JSON object; each
PLACE is the path of a folder that it makes, with a slash at its end, or of a file that it has not, which begins with a
dot: an empty one is taken away.

Such scripts install their own tools first. There is no network here, and what they install is there already: stand-ins
take the place of the installers.
"""

import contextlib
import json
import os
import re
import subprocess
import sys

from foreign_view import VIEW, lay_temporary, of_image, prepare_programs, report, view, write_program

AT_ONCE = {"PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "npm_config_fetch_retries": "0"}
"""Variables with which installers fail at once where there is no network; servers of the task's own they still ask."""
FAILED = re.compile(r"\b[1-9]\d* fail(ed|ing)\b|^((--- )?FAIL|AssertionError)\b", re.MULTILINE)
"""What programs that run tests say where some failed."""
COUNTED = re.compile(
    r"(^|[^a-z])(n|num|number|counts?|total|cases|tests?|steps?|lines?|size|bytes|memory|[kmg]?b|tokens?|calls|items|"
    r"pass(ed|es)|fail(ed|s|ures?)?|skipped|correct|errors?|warnings?|loss(es)?|costs?|price|penalt(y|ies)|regret|gap|"
    r"time|times?tamp|[mun]?s|secs?|seconds|minutes|hours|duration|latency|elapsed|wall|cpu|runtime|code|exit|seed|"
    r"version|p\d\d+|max|min|std|rmse|mse|mae|distance|dist|violations?)($|[^a-z])"
)
"""Names of what is counted, measured or lost, which is no reward."""
LAST = 4000
"""Characters of the verifier's output that agents are told."""
NOTHING = "#!/bin/sh\nexit 0\n"
FETCH = """#!/bin/sh
case "$*" in *localhost*|*127.0.0.1*) exec /usr/bin/{name} "$@" ;; esac
exit 0
"""
VALUED = """
-b -c -C -f -i -p -P -w --build-constraints --cache-dir --color --config-file --constraints --default-index --directory
--env-file --exclude-newer --extra --extra-index-url --find-links --from --group --index --index-strategy --index-url
--link-mode --only-group --overrides --package --prerelease --project --prompt --python --python-platform --resolution
--spec --torch-backend --with --with-editable --with-requirements
"""
"""Options that a value follows."""
RUN = """#!/bin/sh
verb=${0##*/}
while [ $# -gt 0 ]; do
  case "$verb $1" in
    "uv run"|"pipx run") verb=run ;;
    "uv venv") verb=venv ;;
    "uv tool") [ "$2" = run ] || exit 0; verb=run; shift ;;
    *" -m"|*" --module") shift; exec python3 -m "$@" ;;
    *" --") shift; break ;;
    @VALUED@) [ $# -gt 1 ] && shift ;;
    *" -"*) ;;
    "uvx "*|"run "*|"venv "*) break ;;
    *) exit 0 ;;
  esac
  shift
done
if [ "$verb" = venv ]; then
  place=${1:-.venv}
  [ -e "$place" ] || { mkdir -p "$(dirname "$place")" && ln -s "${0%/*/*}" "$place"; }
  exit
fi
[ $# -eq 0 ] && exit 0
program=${1%%@*}; program=${program%%==*}; program=${program%%\\[*}; shift
case "$program" in
  *.py) exec python3 "$program" "$@" ;;
  python|python3) exec python3 "$@" ;;
  *) exec "$program" "$@" ;;
esac
""".replace("@VALUED@", "|".join(f'*" {option}"' for option in VALUED.split()))
"""Runs what `uv run`, `uvx` and `pipx run` would, with what is installed; `uv venv` makes a virtual environment
of that, and any other command of theirs does nothing."""
PYTEST = '#!/bin/sh\nexec python3 -m pytest -p no:cacheprovider "$@"\n'
AS_USER = """#!/bin/sh
name=${0##*/}; user=
case "$name" in gosu|su-exec) shift; exec "$@" ;; esac
while [ $# -gt 0 ]; do
  case "$name $1" in
    *" --") shift; break ;;
    "su -c"|"runuser -c") shift; said=$1; shift; exec bash -c "$said" "$@" ;;
    "runuser -u") user=$2; shift ;;
    "su -s"|"runuser -s"|*" -"[ugG]|"setpriv --re"?id) shift ;;
    *" -"*) ;;
    "su "*|"runuser "*) [ -z "$user" ] || break; user=$1 ;;
    *) break ;;
  esac
  shift
done
exec env "$@"
"""
"""Runs what it is to run as another user as the only one that there is."""
STAND_INS = {
    **dict.fromkeys(("apt", "apt-get", "apk", "pip", "pip3"), NOTHING),
    **dict.fromkeys(("chgrp", "chown", "groupadd", "useradd", "adduser", "usermod"), NOTHING),
    **{name: FETCH.format(name=name) for name in ("curl", "wget")},
    **dict.fromkeys(("uv", "uvx", "pipx"), RUN),
    **dict.fromkeys(("sudo", "doas", "su", "runuser", "setpriv", "gosu", "su-exec"), AS_USER),
    "pytest": PYTEST,
}


def main(workdir, inner=".", variables="{}", *places):
    """Verify what lies here and print its reward; the working folder is `inner` here, if its path does not lead there.

    Raises:
        SystemExit: the verifier left no reward.
    """
    folder = view()
    lay_temporary(f"{folder}/image/tmp")
    lay_temporary("tmp")
    programs = prepare_programs()
    furnish(programs)
    lay_places(places)
    logs = os.path.abspath(f"{VIEW}-logs")  # noqa: PTH100
    for name in ("verifier", "agent", "artifacts"):
        os.makedirs(f"{logs}/{name}", exist_ok=True)  # noqa: PTH103
    tests = "/tests" if os.path.isdir("/tests") else f"{folder}/tests"  # noqa: PTH112
    os.makedirs(inner, exist_ok=True)  # noqa: PTH103
    here = workdir if workdir != "/" and os.path.isdir(workdir) else inner  # noqa: PTH112
    ours = {"TEST_DIR": tests, "LOGS_DIR": logs, "PWD": os.path.abspath(here)}  # noqa: PTH100
    said = f"{logs}/verifier/test-stdout.txt"
    os.chmod(f"{tests}/test.sh", 0o755)  # noqa: PTH101
    with open(said, "wb") as output:  # noqa: PTH123 - no pipe: what the script leaves running would hold it open
        done = subprocess.run(
            ["bash", "-c", 'exec "$0"', f"{tests}/test.sh"],
            cwd=here,
            env={**os.environ, **AT_ONCE, **of_image(json.loads(variables), programs), **ours},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    text = content(said)
    print(text[-LAST:])
    reward, metrics = read(f"{logs}/verifier")
    if reward is None and done.returncode and FAILED.search(text) and may_reward(tests):
        print("tests/test.sh ended where tests failed, and left no reward: it counts as 0, as with Harbor")
        reward = 0.0
    if reward is None:
        sys.exit(f"tests/test.sh ended with exit code {done.returncode}, and left no reward in /logs/verifier")
    report(reward, metrics)


def may_reward(tests):
    """Whether a verifier speaks of a reward at all: some write none where all is well."""
    names = (name for name in os.listdir(tests) if name.endswith((".sh", ".py")))  # noqa: PTH208
    return any("reward" in content(f"{tests}/{name}") for name in names)


def content(path):
    """The text of a file."""
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return file.read()


def lay_places(places):
    """Have the folders that an image has where the candidate's files are, and take away files that it has not."""
    ours = (f"{os.getcwd()}/", f"{os.path.realpath(os.environ.get('TMPDIR', '/tmp'))}/")  # noqa: PTH109
    for path in places:
        if path.startswith("./") and os.path.isfile(path) and not os.path.getsize(path):  # noqa: PTH113, PTH202
            os.remove(path)  # noqa: PTH107
        elif path.startswith("/") and os.path.realpath(path).startswith(ours):
            os.makedirs(os.path.realpath(path), exist_ok=True)  # noqa: PTH103


def furnish(programs):
    """Put stand-ins for installers where programs are looked for first."""
    for name, text in STAND_INS.items():
        write_program(f"{programs}/{name}", text)
    with open(f"{programs}/activate", "w", encoding="utf-8"):  # noqa: PTH123
        pass
    home = os.environ.get("HOME", "")
    for folder in (".local/bin", ".cargo") if os.path.isdir(home) else ():  # noqa: PTH112
        os.makedirs(f"{home}/{folder}", exist_ok=True)  # noqa: PTH103
        with open(f"{home}/{folder}/env", "a", encoding="utf-8"):  # noqa: PTH123
            pass


def read(folder):
    """The reward that a verifier left, None where it left none, and its other numbers.

    `reward` of reward.json counts, then reward.txt, then `score` of reward.json, then its only number, then the mean of
    its numbers if all are rewards.

    Raises:
        SystemExit: the mean of its numbers would mean nothing.
    """
    found = {}
    with contextlib.suppress(OSError, ValueError), open(f"{folder}/reward.json", encoding="utf-8") as file:  # noqa: PTH123
        found = json.load(file)
        found = found if isinstance(found, dict) else {"reward": found}
    numbers = {name: value for name, value in found.items() if type(value) in (int, float)}
    if isinstance(found.get("reward"), int | float):  # a flag too, as Harbor reads it
        return float(found["reward"]), numbers
    with contextlib.suppress(OSError, ValueError), open(f"{folder}/reward.txt", encoding="utf-8") as file:  # noqa: PTH123
        return float(file.read().strip()), numbers
    if "score" in numbers:
        return float(numbers["score"]), numbers
    if len(numbers) > 1 and (unlike := [name for name in numbers if not is_reward(name, numbers[name])]):
        told = ", ".join(f"{name} = {numbers[name]}" for name in unlike)
        sys.exit(
            f"reward.json has no `reward`, and the mean of {', '.join(numbers)} would mix unlike quantities ({told}): "
            "the verifier has to write `reward` there, or reward.txt"
        )
    return (sum(map(float, numbers.values())) / len(numbers) if numbers else None), numbers


def is_reward(name, value):
    """Whether a number can be one of several rewards: it is between 0 and 1, and its name is no count, cost or time."""
    words = re.sub("([a-z])([A-Z])", r"\1_\2", name).lower()
    return 0 <= value <= 1 and COUNTED.search(words) is None


if __name__ == "__main__":
    main(*sys.argv[1:])
