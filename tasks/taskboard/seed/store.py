# What is kept, in SQLite.
import sqlite3

FILE = "board.sqlite"
TABLE = "CREATE TABLE IF NOT EXISTS tasks (id INTEGER PRIMARY KEY, title TEXT)"


def connection():
    made = sqlite3.connect(FILE)
    made.execute(TABLE)
    return made


def as_task(row):
    return {"id": row[0], "title": row[1]}


def create(title):
    with connection() as database:
        number = database.execute("INSERT INTO tasks (title) VALUES (?)", (title,)).lastrowid
    return task(number)


def task(number):
    with connection() as database:
        return as_task(database.execute("SELECT id, title FROM tasks WHERE id = ?", (number,)).fetchone())


def tasks():
    with connection() as database:
        return [as_task(row) for row in database.execute("SELECT id, title FROM tasks ORDER BY id")]
