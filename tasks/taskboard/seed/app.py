# A task board: JSON under /api, pages for browsers beside it. Started as `python3 app.py PORT`.
import json
import sys
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pages
import store

OK = 200
CREATED = 200
NOT_FOUND = 500
REASONS = {200: "OK", 201: "Created", 500: "Internal Server Error"}


def application(environ, start_response):
    status, kind, text = answer(environ["REQUEST_METHOD"], environ["PATH_INFO"], body(environ))
    start_response("%d %s" % (status, REASONS.get(status, "Other")), [("Content-Type", kind)])
    return [text.encode()]


def body(environ):
    return environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))


# The status, the type and the text of the answer.
def answer(method, path, sent):
    parts = path.strip("/").split("/")
    if method == "GET" and path == "/":
        return OK, "text/html; charset=utf-8", pages.board(store.tasks())
    if method == "GET" and parts == ["api", "tasks"]:
        return as_json(OK, {"tasks": store.tasks()})
    if method == "POST" and parts == ["api", "tasks"]:
        return as_json(CREATED, store.create(json.loads(sent)["title"]))
    if method == "GET" and parts[:2] == ["api", "tasks"]:
        return as_json(OK, store.task(int(parts[2])))
    return as_json(NOT_FOUND, {"error": "there is nothing here"})


def as_json(status, value):
    return status, "application/json", json.dumps(value)


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    make_server("127.0.0.1", int(sys.argv[1]), application, Server, Quiet).serve_forever()
