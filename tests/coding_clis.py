"""Scripted models for real coding programs: replies of tests/openai_server.py that make each of them change one line.

`with serve([answers(Line("program.py", "A = "))]) as server:` serves any number of them at once, and EvoGit's own
editors and coders as well: a request tells who asks and how far the conversation is. Alone, beside a program in a
sandbox without a network: `python -m tests.coding_clis --port 8400 program.py 'A = '` notes requests in requests.jsonl.
Standard library alone, since it runs in sandboxes too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import shlex
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.openai_server import Behaviour, Request, answer, refusal, serve
from tests.protocol_replies import event

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""How mini-swe-agent is told to end."""

SHELLS = ("bash", "Bash", "exec_command", "shell", "shell_command", "run_shell_command")
"""What programs call the shell among their tools."""

numbers = itertools.count(1)
"""For ids: programs take two replies with the same one for one."""


@dataclass(frozen=True)
class Line:
    """The edit that all are told to make: the line of `path` that begins with `start` goes on with the next value."""

    path: str
    start: str
    values: Iterator[object] = field(default_factory=lambda: itertools.count(2))

    def old(self, shown: str) -> str:
        """The line as it is in a text, where it comes first."""
        found = re.search(rf"^{re.escape(self.start)}.*$", shown, re.MULTILINE)
        return found.group() if found else ""

    def new(self) -> str:
        """The line as it will be."""
        return f"{self.start}{next(self.values)}"

    def command(self) -> str:
        """A shell command that makes the edit."""
        return f"sed -i {shlex.quote(f's/^{self.start}.*/{self.new()}/')} {shlex.quote(self.path)}"

    def block(self, shown: str) -> str:
        """The edit as EvoGit's own agents write it."""
        return f"<<<<<<< SEARCH {self.path}\n{self.old(shown)}\n=======\n{self.new()}\n>>>>>>> REPLACE\n"


@dataclass(frozen=True)
class Said:
    """A reply: a text, and perhaps a call of a tool."""

    text: str
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


def lean() -> tuple[str, ...]:
    """All that aider and mini-swe-agent import when they change a line, in versions that aider asks for: half a
    gigabyte instead of the 1.2 of what they name.

    pip gets just these where PIP_NO_DEPS=1 is in the environment. aider needs AIDER_MAP_TOKENS=0 then: a map of the
    repository would take scipy.
    """
    return tuple(Path(__file__).with_suffix(".txt").read_text().split())


def answers(line: Line) -> Callable[[Request], Behaviour]:
    """What a model says that is asked by any of the programs, in the way that the one who asks reads it."""

    def behave(request: Request) -> Behaviour:
        path = request.path.partition("?")[0]
        if path not in RENDERERS:
            return refusal(404)
        body = request.body
        return RENDERERS[path](_said(line, body), bool(body.get("stream")))

    return behave


# --- what is said -----------------------------------------------------------------------------------------------------


def _said(line: Line, body: Any) -> Said:
    messages = body["input" if "input" in body else "messages"]
    texts = [_text(message) for message in messages]
    for tool in body.get("tools", ()):
        if tool.get("function", tool).get("name") in SHELLS:
            ends = SUBMIT in "\n".join(texts)
            return _to_one_with_a_shell(line, tool, sum(map(_is_result, messages)), ends=ends)
    if "SEARCH/REPLACE block" in texts[0]:
        return Said(_to_aider(line, texts))
    if "FINISH proposes your draft" in texts[0]:
        return Said(_to_coder(line, texts))
    if "You are one of several agents" in texts[0]:
        return Said(f"TITLE: another value\n{line.block(chr(10).join(texts[1:]))}")
    return Said("A title")  # of a conversation, which some programs ask for


def _to_one_with_a_shell(line: Line, tool: Any, done: int, *, ends: bool) -> Said:
    """Three steps, of which so many are done: to evaluate, to edit, to end (with a command or with words)."""
    commands: list[Callable[[], str]] = [lambda: "evaluate", line.command, *([lambda: SUBMIT] if ends else [])]
    if done >= len(commands):
        return Said("The line is changed.")
    schema = tool.get("function", tool)
    known = (schema.get("parameters") or schema.get("input_schema"))["properties"]
    name = "cmd" if "cmd" in known else "command"
    command = commands[done]()
    arguments = {name: ["sh", "-c", command] if known[name].get("type") == "array" else command}
    return Said("Next.", schema["name"], arguments | ({"description": "A step"} if "description" in known else {}))


def _to_aider(line: Line, texts: Sequence[str]) -> str:
    if any(text.startswith("I ran this command:") for text in texts):
        return "That will do."
    files = [text for text in texts if "*added these files to the chat*" in text]
    if not (old := line.old("\n".join(files))):
        return f"I have to see {line.path} first."
    return f"{line.path}\n```\n<<<<<<< SEARCH\n{old}\n=======\n{line.new()}\n>>>>>>> REPLACE\n```\n"


def _to_coder(line: Line, texts: Sequence[str]) -> str:
    steps = {2: f"<<<<<<< READ {line.path}\n", 6: "<<<<<<< EVALUATE\n"}
    return line.block(texts[-1]) if len(texts) == 4 else steps.get(len(texts), "<<<<<<< FINISH another value\n")


def _text(message: Any) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text") or "" for part in content)


def _is_result(message: Any) -> bool:
    """Whether a message, or an item of Responses, is what a tool came to."""
    content = message.get("content")
    kinds = [part.get("type") for part in content] if isinstance(content, list) else []
    return message.get("role") == "tool" or message.get("type") == "function_call_output" or "tool_result" in kinds


# --- in which words ---------------------------------------------------------------------------------------------------


def _chat(said: Said, stream: bool) -> Behaviour:
    function = {"name": said.tool, "arguments": json.dumps(said.arguments)}
    call = {"index": 0, "id": f"call_{next(numbers)}", "type": "function", "function": function}
    message = {"content": said.text} | ({"tool_calls": [call]} if said.tool else {})
    finish = "tool_calls" if said.tool else "stop"
    if not stream:
        return answer(message, finish=finish)
    about = {"id": f"chatcmpl-{next(numbers)}", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    chunks = [
        {"choices": [{"index": 0, "delta": {"role": "assistant", **message}, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
        {"choices": [], "usage": usage},
    ]
    return Behaviour(pieces=[*(event({**about, **chunk}) for chunk in chunks), "data: [DONE]\n\n"])


def _responses(said: Said, stream: bool) -> Behaviour:
    text = {"type": "output_text", "text": said.text, "annotations": []}
    items: list[dict[str, Any]] = [{"type": "message", "role": "assistant", "content": [text]}]
    if said.tool:
        call = {"call_id": f"call_{next(numbers)}", "name": said.tool, "arguments": json.dumps(said.arguments)}
        items.append({"type": "function_call", **call})
    items = [{"id": f"item_{next(numbers)}", "status": "completed", **item} for item in items]
    whole = {"id": f"resp_{next(numbers)}", "object": "response", "created_at": 0, "model": "m", "output": items}
    whole |= {"status": "completed", "usage": {"input_tokens": 100, "output_tokens": 20, "total_tokens": 120}}
    if not stream:
        return Behaviour(body=json.dumps(whole))
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    return _stream(
        {"type": "response.created", "response": begun},
        *({"type": "response.output_item.done", "output_index": n, "item": item} for n, item in enumerate(items)),
        {"type": "response.completed", "response": whole},
    )


def _anthropic(said: Said, stream: bool) -> Behaviour:
    text = {"type": "text", "text": said.text}
    call = {"type": "tool_use", "id": f"toolu_{next(numbers)}", "name": said.tool, "input": said.arguments}
    about = {"id": f"msg_{next(numbers)}", "type": "message", "role": "assistant", "model": "m"}
    reason, usage = "tool_use" if said.tool else "end_turn", {"input_tokens": 100, "output_tokens": 20}
    if not stream:
        content = [text, call] if said.tool else [text]
        return Behaviour(body=json.dumps({**about, "content": content, "stop_reason": reason, "usage": usage}))
    blocks = [({**text, "text": ""}, {"type": "text_delta", "text": said.text})]
    if said.tool:
        blocks.append(({**call, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(said.arguments)}))
    events: list[dict[str, Any]] = []
    for n, (block, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": n, "content_block": block})
        events.append({"type": "content_block_delta", "index": n, "delta": delta})
        events.append({"type": "content_block_stop", "index": n})
    return _stream(
        {"type": "message_start", "message": {**about, "content": [], "usage": usage}},
        *events,
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    )


def _stream(*events: Mapping[str, Any]) -> Behaviour:
    return Behaviour(pieces=[event({"sequence_number": n, **each}, each["type"]) for n, each in enumerate(events)])


RENDERERS: Mapping[str, Callable[[Said, bool], Behaviour]] = {
    "/v1/chat/completions": _chat,
    "/v1/responses": _responses,
    "/v1/messages": _anthropic,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("path", help="of the file to change")
    parser.add_argument("start", help="of the line to change, which goes on with 2, 3, ...")
    args = parser.parse_args()
    behave = answers(Line(args.path, args.start))

    def noted(request: Request) -> Behaviour:
        with Path("requests.jsonl").open("a") as notes:
            notes.write(json.dumps({"path": request.path, "body": request.body if request.text else None}) + "\n")
        return behave(request)

    with serve([noted], port=args.port):
        signal.pause()


if __name__ == "__main__":
    main()
