# What is kept, in SQLite.
import sqlite3
from contextlib import closing

FILE = "board.sqlite"
FIELDS = ("id", "title", "status", "priority", "due")
TABLE = """CREATE TABLE IF NOT EXISTS tasks (
    id INTEGER PRIMARY KEY AUTOINCREMENT, title TEXT NOT NULL, status TEXT NOT NULL, priority INTEGER NOT NULL, due TEXT
)"""
SELECT = "SELECT id, title, status, priority, due FROM tasks"
LISTS = {
    "id": SELECT + " ORDER BY id",
    "priority": SELECT + " ORDER BY priority DESC, id",
    "due": SELECT + " ORDER BY due IS NULL, due, id",
}


def asked(sql, values=()):
    with closing(sqlite3.connect(FILE)) as database, database:
        database.execute(TABLE)
        done = database.execute(sql, values)
        return [dict(zip(FIELDS, row, strict=False)) for row in done], done.lastrowid


def create(title, status="todo", priority=3, due=None):
    sql = "INSERT INTO tasks (title, status, priority, due) VALUES (?, ?, ?, ?)"
    return task(asked(sql, (title, status, priority, due))[1])


def task(number):
    return next(iter(asked(SELECT + " WHERE id = ?", (number,))[0]), None)


def change(number, fields):
    now = task(number) | fields
    values = [now[name] for name in FIELDS[1:]]
    asked("UPDATE tasks SET title = ?, status = ?, priority = ?, due = ? WHERE id = ?", (*values, number))
    return task(number)


def delete(number):
    asked("DELETE FROM tasks WHERE id = ?", (number,))


def tasks(status=None, q="", sort="id"):
    found = asked(LISTS[sort])[0]
    return [each for each in found if q.lower() in each["title"].lower() and status in (None, each["status"])]
