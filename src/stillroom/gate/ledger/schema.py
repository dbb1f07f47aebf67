"""The tables of a ledger's file, and the triggers that keep them append-only."""

SCHEMA_VERSION = 2
APPLICATION_ID = 0x5711100D

_SCHEMA = """
CREATE TABLE rows (
    seq INTEGER PRIMARY KEY,
    at TEXT NOT NULL,
    kind TEXT NOT NULL,
    block INTEGER,
    body TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE INDEX rows_by_block ON rows (block, kind, seq);
CREATE INDEX rows_by_kind ON rows (kind, seq);
CREATE TABLE members (hmac BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE answers (
    draw INTEGER PRIMARY KEY,
    key TEXT,
    shape TEXT NOT NULL,
    content BLOB NOT NULL
);
CREATE INDEX answers_by_key ON answers (key);
"""

_GUARDS = "".join(
    f"CREATE TRIGGER {table}_never_{verb.lower()} BEFORE {verb} ON {table} "
    f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;\n"
    for table in ("rows", "members", "answers")
    for verb in ("UPDATE", "DELETE")
)

EMPTY = (
    f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; "
    f"{_SCHEMA} {_GUARDS} COMMIT;"
)
