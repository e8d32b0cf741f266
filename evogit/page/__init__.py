"""The review page: what a browser is told of a run, and the server that tells it.

`graphs/` has what the browser runs, docs/design/page.md what the two agreed on.
"""
