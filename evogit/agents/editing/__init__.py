"""From a model's reply to changed files: answer formats, exact edits, tool calls, repairs."""
