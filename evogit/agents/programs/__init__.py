"""External coding programs (Claude Code, Codex, aider, ...) as agents, each in a container of its own."""
