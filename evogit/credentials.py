"""Credentials in files and texts: found by the exact names of files, and by the forms of keys and tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from evogit.text import folded_name

MAX_SCANNED_BYTES, MAX_BINARY_BYTES = 8 << 20, 64 << 10
"""The prefix of a file that is searched for tokens, and of one that is not text."""

MAX_VALUES, MAX_VALUE_BYTES = 50_000, 256 << 10
"""Values of secret files that are redacted from texts, in turn from each; and the prefix of a file that has them."""

MAX_VALUE_CHARS, HEAD_CHARS = 4096, 6
"""Characters of a value, as of parts of a longer line; and of its beginning, which texts are searched for."""

MIN_VALUE_CHARS = 8
"""Characters of a value that is redacted wherever it occurs; shorter ones occur by chance."""

MIN_PASSPHRASE_CHARS = 12
"""Letters of a password that is redacted; `postgres` or `changeme` occur in ordinary output."""

REDACTED = "[redacted]"

_NAMES = re.compile(
    r"(?:.*/)?(?:"
    r"\.env(?:rc|[._-][^/]*)?|[^/]+\.env|"
    r"id_(?:rsa|dsa|ecdsa|ed25519|ecdsa_sk|ed25519_sk)|"
    r"\.npmrc|\.pypirc|[._]netrc|\.git-credentials|\.pgpass|\.my\.cnf|\.mylogin\.cnf|\.htpasswd|\.dockercfg|"
    r"\.dockerconfigjson|\.vault-token|\.s3cfg|\.boto|\.passwd-s3fs|\.terraformrc|rclone\.conf|"
    r"\.?credentials\.json|service[-_]?account[^/]*\.json|client_secrets?[^/]*\.json|"
    r"application_default_credentials\.json|accesstokens\.json|msal_token_cache\.json|credentials\.tfrc\.json|"
    r"\.?secrets\.(?:toml|ya?ml|json)|terraform\.tfvars(?:\.json)?|[^/]+\.tfstate(?:\.backup)?|kubeconfig|"
    r"\.docker/config\.json|\.aws/(?:credentials|config)|\.kube/config|\.cargo/credentials(?:\.toml)?|"
    r"\.gem/credentials|\.codex/auth\.json|\.config/gh/hosts\.yml|\.azure/[^/]*|"
    r"(?:\.config/)?gcloud/(?:credentials\.db|access_tokens\.db|legacy_credentials/.*)|\.huggingface/token|"
    r"\.ssh/(?!(?:config|known_hosts|authorized_keys)$|[^/]*\.pub$)[^/]*|\.gnupg/.*|"
    r"[^/]+\.(?:pem|key|p12|pfx|kdbx|keystore|jks|ppk|kubeconfig)"
    r")",
    re.DOTALL,
)
"""Paths of files that hold credentials, folded."""

_TEMPLATE = re.compile(r"(?:^|[._-])(?:example|sample|template|dist|defaults?)(?:[._-]|$)")
"""A name such as `.env.example`, whose values are placeholders."""

_BEGIN = r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_MATERIAL = r"(?=(?:\s|\\[nrt]){1,40}(?:Proc-Type|DEK-Info|Version|Comment|Charset|[A-Za-z0-9+/=_-]{16}))"
_BODY = r"(?:[A-Za-z0-9+/=_:,.\s]|-(?!----)|\\[nrt]){16,32768}"


def _apart(literal: str) -> str:
    """A form for the place after a literal that no word ends with; an escaped newline or a colour may precede it."""
    return rf"(?:(?<![A-Za-z0-9_-]{literal})|(?<=\\[nrt]{literal})|(?<=[0-9]m{literal}))"


_FORMS: Sequence[tuple[Sequence[str], str]] = [
    # (texts of which each match has one; the form, of which a group is the credential alone)
    (("PRIVATE KEY",), rf"{_BEGIN}{_MATERIAL}{_BODY}(?:-----END [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----)?"),
    (("AGE-SECRET-KEY-",), r"AGE-SECRET-KEY-1[A-Z0-9]{40,80}"),
    (("AKIA",), r"AKIA[A-Z0-9]{16}(?![A-Z0-9])"),
    (("ASIA",), r"ASIA[A-Z0-9]{16}(?![A-Z0-9])"),
    (
        ("secret_access_key", "SECRET_ACCESS_KEY", "ecretAccessKey"),
        r"(?:secret_access_key|SECRET_ACCESS_KEY|[sS]ecretAccessKey)[\"']?\s{0,9}[=:]\s{0,9}[\"']?"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
    ),
    (("AccountKey=",), r"AccountKey=[A-Za-z0-9+/]{40,100}={0,2}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,255}"),
    (("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,255}"),
    (("glpat-", "glptt-", "gldt-"), r"gl(?:pat|ptt|dt)-[A-Za-z0-9_.-]{16,255}"),
    (("xox",), r"xox[abeoprs]-[A-Za-z0-9-]{10,255}"),
    (("hooks.slack.com",), r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,80}"),
    (
        ("sk-",),
        rf"sk-{_apart('sk-')}(?!ecdsa-|ssh-)(?=[A-Za-z_-]{{0,60}}[0-9])[A-Za-z0-9_-]{{16,255}}",
    ),
    (("sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-v1-"), r"sk-(?:ant|proj|svcacct|or-v1)-[A-Za-z0-9_-]{16,255}"),
    (("sk_live_", "sk_test_", "rk_live_", "rk_test_"), r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    (("whsec_",), r"whsec_[A-Za-z0-9+/=]{20,255}"),
    (("gsk_",), r"gsk_(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,255}"),
    (("xai-",), r"xai-(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,255}"),
    (("AIza",), r"AIza[A-Za-z0-9_-]{30,60}"),
    (("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,400}"),
    (("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,60}"),
    (("npm_",), r"npm_(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,255}"),
    (("pypi-",), r"pypi-(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{30,400}"),
    (("hf_",), r"hf_(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,80}"),
    (("SG.",), r"SG\.[A-Za-z0-9_-]{16,80}\.[A-Za-z0-9_-]{16,80}"),
    (("dop_v1_",), r"dop_v1_[a-f0-9]{40,80}"),
    (("hvs.",), r"hvs\.[A-Za-z0-9_-]{20,255}"),
    (
        (".eyJ",),
        rf"eyJ{_apart('eyJ')}[A-Za-z0-9_-]{{10,2000}}\.eyJ[A-Za-z0-9_-]{{10,4000}}\.[A-Za-z0-9_-]{{20,2000}}",
    ),
]

_QUOTED_KEY = _BEGIN + r"(?:[\s\"'+,]|\\[nrt]){1,40}[A-Za-z0-9+/=_-]{16}"
"""A private key in source code, in several strings; texts are not searched for it, as a quote may end a JSON string."""

_IN_TEXT = [(needle, re.compile(form)) for needles, form in _FORMS for needle in needles]
_IN_BYTES = [
    (needle.encode(), re.compile(form.encode()))
    for needles, form in (*_FORMS, (("PRIVATE KEY",), _QUOTED_KEY))
    for needle in needles
]

_ASSIGNED = re.compile(r"""\s*(?:export\s+)?["']?([\w.-]{1,80})["']?\s*[=:]\s*["']?([^"']{6,4096}?)["']?,?\s*""")
_SECRET_WORD = re.compile(r"pass|pwd|secret|token|key|auth|cred|private|salt", re.IGNORECASE)
_WORD = re.compile(r"""[^\s"'`=:,;<>(){}\[\]]{8,4096}""")


def is_secret_name(path: str) -> bool:
    """Return whether files with this name hold credentials, in any folder and any spelling of the name."""
    folded = "/".join(map(folded_name, path.split("/")))
    return bool(_NAMES.fullmatch(folded)) and not _TEMPLATE.search(folded.rpartition("/")[2])


def secret_files(contents: Mapping[str, Callable[[], bytes]]) -> Iterator[str]:
    """The paths of files that hold credentials, by name or by content; the latter is read for all others."""
    return (path for path, read in contents.items() if is_secret_name(path) or tokens(read()))


def tokens(content: bytes) -> set[bytes]:
    """The private keys and tokens in the beginning of a file, also of one in UTF-16."""
    content = content[:MAX_SCANNED_BYTES]
    if b"\0" in content[:256]:
        content = content[:MAX_BINARY_BYTES].replace(b"\0", b"")
    return {match[0] for needle, form in _IN_BYTES if needle in content for match in form.finditer(content)}


def values(content: bytes) -> Iterator[str]:
    """Return the texts of a secret file that must not be printed: tokens, lines, values and words.

    A value counts if its name says so, or if it is long or has both letters and digits; a common word never does.
    """
    text = content[:MAX_VALUE_BYTES].replace(b"\0", b"").decode("utf-8", "ignore").replace("\\n", "\n")
    for line in text.splitlines():
        line = line.strip()
        if assigned := _ASSIGNED.fullmatch(line):
            name, value = assigned[1], assigned[2].strip()
            is_word = value.isalpha() and value.islower() and len(value) < MIN_PASSPHRASE_CHARS
            if (_SECRET_WORD.search(name) and not is_word) or _is_telling(value):
                yield value
        yield from filter(_is_telling, _WORD.findall(line))
        if len(line) >= MIN_VALUE_CHARS and not line.startswith("-----"):
            yield from (line[at : at + MAX_VALUE_CHARS] for at in range(0, len(line), MAX_VALUE_CHARS))


def _is_telling(value: str) -> bool:
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= (MIN_VALUE_CHARS if mixed else 2 * MIN_VALUE_CHARS)


class SeedSecrets(Struct, frozen=True):
    """The files of a run's seed, a commit, that hold credentials."""

    seed: str
    paths: Sequence[str]


class Redactor:
    """Replaces tokens of known forms, and the values of secret files, in texts that leave this machine."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        """`files` are the secret ones; of one that has an ordinary name only the tokens in it are redacted."""
        held = (
            data if is_secret_name(path) else b"\n".join(sorted(tokens(data))) for path, data in (files or {}).items()
        )
        found = set[str]()
        left = deque(map(values, held))
        while left and len(found) < MAX_VALUES:  # in turn, so that no file takes the place of another
            value = next(left[0], None)
            if value is None:
                left.popleft()
                continue
            if len(value) >= HEAD_CHARS:
                found.add(value)
            left.rotate(-1)
        self._values = sorted(found)
        self._heads = {value[:HEAD_CHARS] for value in self._values}
        self._head = _any_of(self._heads)
        self._longest = max(map(len, self._values), default=0)
        self._shorter: list[int] = []
        for at, value in enumerate(self._values):
            self._shorter.append(self._beginning(value, at - 1))

    def _beginning(self, text: str, at: int) -> int:
        """The place of the longest value that the text begins with, if the last one in order before it is at `at`.

        `_shorter` has for each value the place of the longest one that it begins with; -1 stands for none.
        """
        while at >= 0 and not text.startswith(self._values[at]):
            at = self._shorter[at]
        return at

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the spans of all values, found in one pass; spans that overlap are merged."""
        begin = end = 0
        for at in (match.start() for match in self._head.finditer(text)):
            if text[at : at + HEAD_CHARS] in self._heads:
                rest = text[at : at + self._longest]
                place = self._beginning(rest, bisect_right(self._values, rest) - 1)
                if place >= 0:
                    if at >= end:
                        yield begin, end
                        begin = at
                    end = max(end, at + len(self._values[place]))
        yield begin, end

    def text(self, text: str) -> str:
        """The text without them."""
        if self._values:
            kept, after = [], 0
            for begin, end in self._spans(text):
                if end > begin:
                    kept += [text[after:begin], REDACTED]
                    after = end
            text = "".join([*kept, text[after:]])
        for needle, form in _IN_TEXT:
            if needle in text:
                text = form.sub(_redacted, text)
        return text

    def data(self, content: bytes) -> bytes:
        """The same for what a program printed, of any encoding."""
        return self.text(content.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _any_of(heads: Iterable[str]) -> re.Pattern[str]:
    """A form for the first letter of each head, and of few other texts: its size does not grow with their number."""
    columns = defaultdict[str, list[set[str]]](lambda: [set() for _ in range(1, HEAD_CHARS)])
    for head in heads:
        for letters, letter in zip(columns[head[0]], head[1:], strict=True):
            letters.add(letter)
    forms = {
        first: "".join(f"[{''.join(map(re.escape, sorted(letters)))}]" for letters in rest)
        for first, rest in columns.items()
    }
    return re.compile("|".join(f"{re.escape(first)}(?={rest})" for first, rest in sorted(forms.items())))


def _redacted(match: re.Match[str]) -> str:
    """A match without its credential; a quote before that may be one of JSON."""
    start = match.start(1) - match.start() if match.lastindex else 0
    return match[0][:start] + REDACTED
