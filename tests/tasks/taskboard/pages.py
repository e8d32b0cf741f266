# Pages for browsers.
import html

BOARD = """<!doctype html>
<title>Tasks</title>
<h1>Tasks</h1>
<p>%s</p>
<form method="post" action="/tasks"><input name="title" maxlength="100"><button>Add</button></form>
<ul>%s</ul>
"""


def board(tasks, error=""):
    items = "".join(f"<li>{html.escape(task['title'])}</li>" for task in tasks)
    return BOARD % (html.escape(error), items)
