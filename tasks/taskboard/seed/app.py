# A task board, which is to be built. Started as `python3 app.py PORT`.
import sys
from wsgiref.simple_server import make_server


def application(environ, start_response):
    start_response("501 Not Implemented", [("Content-Type", "text/plain")])
    return [b"nothing is built yet\n"]


if __name__ == "__main__":
    make_server("127.0.0.1", int(sys.argv[1]), application).serve_forever()
