# A task board: JSON under /api, pages for browsers beside it. Started as `python3 app.py PORT`.
import datetime
import json
import sys
from http import HTTPStatus
from socketserver import ThreadingMixIn
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pages
import store

STATUSES = ("todo", "doing", "done")


class Refused(Exception):
    def __init__(self, status, error, **headers):
        self.status = status
        self.error = error
        self.headers = headers


def application(environ, start_response):
    try:
        status, headers, text = answer(environ)
    except Refused as refused:
        status, headers, text = as_json(refused.status, {"error": refused.error})
        headers |= refused.headers
    start_response(f"{status} {HTTPStatus(status).phrase}", list(headers.items()))
    return [text.encode()]


def answer(environ):
    method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    sent = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    ways = routes(path)
    if not ways:
        raise Refused(404, "there is nothing here")
    if method not in ways:
        raise Refused(405, f"{method} is not for this path", Allow=", ".join(ways))
    return ways[method](sent, {name: values[-1] for name, values in query.items()})


# What can be done at a path: method -> function.
def routes(path):
    if path == "/":
        return {"GET": lambda sent, query: as_page(200, pages.board(store.tasks()))}
    if path == "/tasks":
        return {"POST": fill}
    if path == "/api/tasks":
        return {"GET": listed, "POST": create}
    if path == "/api/stats":
        return {"GET": lambda sent, query: as_json(200, {each: len(store.tasks(each)) for each in STATUSES})}
    number = path.removeprefix("/api/tasks/")
    task = store.task(int(number)) if number.isdecimal() and number.isascii() and len(number) < 16 else None
    if task is None:
        return {}
    return {
        "GET": lambda sent, query: as_json(200, task),
        "PATCH": lambda sent, query: as_json(200, store.change(task["id"], fields_of(sent))),
        "DELETE": lambda sent, query: (store.delete(task["id"]), (204, {}, ""))[1],
    }


def listed(sent, query):
    if query.get("status", "todo") not in STATUSES:
        raise Refused(400, "status is none of " + ", ".join(STATUSES))
    if query.get("sort", "id") not in store.LISTS:
        raise Refused(400, "sort is none of " + ", ".join(store.LISTS))
    limit, offset = query.get("limit", "1000000"), query.get("offset", "0")
    if not (limit.isdecimal() and offset.isdecimal()):
        raise Refused(400, "limit and offset are whole numbers from 0 on")
    found = store.tasks(query.get("status"), query.get("q", ""), query.get("sort", "id"))
    return as_json(200, {"tasks": found[int(offset) :][: int(limit)]})


def create(sent, query):
    fields = fields_of(sent)
    if "title" not in fields:
        raise Refused(400, "title is missing")
    return as_json(201, store.create(**fields))


def fill(sent, query):
    try:
        store.create(checked_title(parse_qs(sent.decode()).get("title", [""])[-1]))
    except Refused as refused:
        return as_page(400, pages.board(store.tasks(), refused.error))
    return 303, {"Location": "/"}, ""


def fields_of(sent):
    try:
        fields = json.loads(sent)
    except ValueError:
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(fields, dict) or not fields.keys() <= CHECKS.keys():
        raise Refused(400, "expected an object with " + ", ".join(CHECKS))
    return {name: CHECKS[name](value) for name, value in fields.items()}


def checked_title(value):
    if not isinstance(value, str) or not 0 < len(value.strip()) <= 100:
        raise Refused(400, "title has 1 to 100 characters")
    return value.strip()


def checked_status(value):
    if value not in STATUSES:
        raise Refused(400, "status is none of " + ", ".join(STATUSES))
    return value


def checked_priority(value):
    if type(value) is not int or not 1 <= value <= 5:
        raise Refused(400, "priority is a whole number from 1 to 5")
    return value


def checked_due(value):
    try:
        return value if value is None else datetime.date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise Refused(400, "due is a day such as 2030-12-31, or null") from None


CHECKS = {"title": checked_title, "status": checked_status, "priority": checked_priority, "due": checked_due}


def as_json(status, value):
    return status, {"Content-Type": "application/json"}, json.dumps(value)


def as_page(status, text):
    return status, {"Content-Type": "text/html; charset=utf-8"}, text


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    make_server("127.0.0.1", int(sys.argv[1]), application, Server, Quiet).serve_forever()
