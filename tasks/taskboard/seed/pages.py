# Pages for browsers.
BOARD = """<!doctype html>
<title>Tasks</title>
<h1>Tasks</h1>
<ul>%s</ul>
"""


def board(tasks):
    return BOARD % "".join("<li>%s</li>" % task["title"] for task in tasks)
