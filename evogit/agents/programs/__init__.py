"""External coding programs (Claude Code, Codex, aider, ...) as agents, each in a container of its own.

A draft of the parent goes in as a folder, the changed folder is read back as a proposal. Start with `agent.py`, then
`read_back.py`; `presets.py` has the known programs.
"""
