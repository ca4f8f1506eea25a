"""One row for a recording, one for each event, and one for each node of a compiled program that an event stands for."""

import json
import os
import sqlite3
import time
from contextlib import closing

SCHEMA = """
CREATE TABLE IF NOT EXISTS recordings (
    id INTEGER PRIMARY KEY, label TEXT NOT NULL, written_ns INTEGER NOT NULL, pid INTEGER NOT NULL,
    dropped INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS events (
    recording INTEGER NOT NULL REFERENCES recordings ON DELETE CASCADE, id INTEGER NOT NULL, parent INTEGER,
    thread INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, overload TEXT NOT NULL,
    begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, self_us REAL NOT NULL, bytes INTEGER NOT NULL,
    sequence_nr INTEGER, owner TEXT, line TEXT, shapes TEXT, PRIMARY KEY (recording, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nodes (
    recording INTEGER NOT NULL, event INTEGER NOT NULL, op TEXT NOT NULL, line TEXT NOT NULL, owner TEXT NOT NULL,
    shapes TEXT NOT NULL, FOREIGN KEY (recording, event) REFERENCES events (recording, id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS events_by_name ON events (name);
CREATE VIEW IF NOT EXISTS by_name AS
    SELECT recording, name, count(*) AS calls, sum(end_ns - begin_ns) / 1000.0 AS total_us, sum(self_us) AS self_us
    FROM events GROUP BY recording, name;
"""


def write(events, path, label=""):
    """Add the events of a recording to the SQLite file at `path`, which is made if it is not there.

    All of it is one transaction: where it fails, nothing of the recording is in the file. Returns its number.
    """
    with closing(sqlite3.connect(path, timeout=30)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(SCHEMA)
        with connection:
            found = connection.execute(
                "INSERT INTO recordings (label, written_ns, pid, dropped) VALUES (?, ?, ?, ?)",
                (label, time.time_ns(), os.getpid(), events.dropped),
            )
            recording = found.lastrowid
            connection.executemany(
                f"INSERT INTO events VALUES ({', '.join('?' * 15)})", (_row(recording, e) for e in events)
            )
            connection.executemany("INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?)", _nodes(recording, events))
    return recording


def _row(recording, e):
    parent = None if e.cpu_parent is None else e.cpu_parent.id
    written = e.plan.nbytes if e.plan else e.cpu_memory_usage
    names = recording, e.id, parent, e.thread, e.kind, e.name, e.overload_name
    times = e.begin, e.end, e.self_cpu_time_total, written
    line = e.stack[0] if e.stack else None
    sequence = e.sequence_nr if e.sequence_nr > 0 else None
    return *names, *times, sequence, e.owner or None, line, json.dumps(e.input_shapes) if e.input_shapes else None


def _nodes(recording, events):
    for e in events:
        for op, line, owner, shapes in e.plan.nodes if e.plan else ():
            yield recording, e.id, op, line, owner, json.dumps(shapes)
