-- The schema of a store as the migrations leave it, written by scripts/schema_files.py.
-- Nothing is applied from here. The tables that FTS5 keeps for itself are left out.

PRAGMA application_id = 1363757653;
PRAGMA user_version = 1;

CREATE TABLE migration (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    qiju_version TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

CREATE TABLE counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;

CREATE TABLE project (
    slug TEXT PRIMARY KEY CHECK (slug <> ''),
    uuid TEXT NOT NULL UNIQUE DEFAULT (
        lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2)
        || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2)
        || '-' || lower(hex(randomblob(6)))),
    name TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

CREATE TABLE project_root (
    path TEXT PRIMARY KEY,
    project TEXT NOT NULL REFERENCES project (slug) ON UPDATE CASCADE ON DELETE CASCADE,
    hosts TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(hosts)),
    registered_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

CREATE INDEX project_root_project ON project_root (project);

CREATE TABLE record (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,      -- commit order, dense, never reused
    id TEXT NOT NULL CHECK (id <> ''),          -- <session>:<number>, unique within a project
    project TEXT NOT NULL CHECK (project <> '') REFERENCES project (slug) ON UPDATE CASCADE,
    tier TEXT NOT NULL DEFAULT 'short' CHECK (tier IN ('short', 'long', 'archive')),
    ts TEXT NOT NULL DEFAULT '',                -- exactly as written
    instant INTEGER,                            -- microseconds since 1970-01-01T00:00Z; worked out by trigger when NULL
    session_id TEXT NOT NULL DEFAULT '',
    number INTEGER NOT NULL DEFAULT 0,
    session_source TEXT NOT NULL DEFAULT '',    -- where the session id came from
    agent TEXT NOT NULL DEFAULT 'unknown',
    source TEXT NOT NULL DEFAULT 'manual' CHECK (source IN ('manual', 'agent')),
    model TEXT NOT NULL DEFAULT '',             -- '' = absent
    model_effort TEXT NOT NULL DEFAULT '',
    title TEXT NOT NULL DEFAULT '',
    tags TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(tags) AND json_type(tags) = 'array'),
    search_terms TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(search_terms) AND json_type(search_terms) = 'array'),
    next_steps TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(next_steps) AND json_type(next_steps) = 'array'),
    body_md TEXT NOT NULL DEFAULT '',
    redactions TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(redactions) AND json_type(redactions) = 'array'),
    schema_version INTEGER NOT NULL DEFAULT 2,
    extra TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(extra) AND json_type(extra) = 'object'),
    digest TEXT NOT NULL DEFAULT '',            -- SHA-256 of the canonical JSON; '' = unsealed (written by hand)
    folded TEXT NOT NULL DEFAULT '',            -- NFC-casefolded search text where the index would fold otherwise
    rev INTEGER NOT NULL DEFAULT 0,             -- number of its last content change
    tier_rev INTEGER NOT NULL DEFAULT 0,        -- number of its last tier move, 0 = never moved
    revised INTEGER NOT NULL DEFAULT 0,         -- 1 = content changed after the insert
    late INTEGER NOT NULL DEFAULT 0             -- 1 = its instant is out of commit order, or far in the future
) STRICT;

CREATE UNIQUE INDEX record_id ON record (id, project);

CREATE INDEX record_instant ON record (instant, seq);

CREATE INDEX record_project ON record (project, instant, seq);

CREATE INDEX record_session ON record (session_id, number, seq);

CREATE INDEX record_rev ON record (rev);

CREATE INDEX record_short ON record (project, instant) WHERE tier = 'short';

CREATE INDEX record_late ON record (late, instant, seq);

CREATE INDEX record_unsealed ON record (instant, seq) WHERE digest = '';

CREATE INDEX record_revised ON record (rev, seq) WHERE revised = 1;

CREATE INDEX record_moved ON record (tier_rev, seq) WHERE tier_rev > 0;

CREATE TABLE tombstone (
    what TEXT NOT NULL CHECK (what IN ('record', 'event')),
    seq INTEGER NOT NULL,
    rev INTEGER NOT NULL,
    id TEXT NOT NULL,
    project TEXT NOT NULL DEFAULT '',
    session_id TEXT NOT NULL DEFAULT '',
    number INTEGER NOT NULL DEFAULT 0,
    deleted_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (what, seq)
) STRICT, WITHOUT ROWID;

CREATE INDEX tombstone_rev ON tombstone (what, rev);

CREATE INDEX tombstone_session ON tombstone (session_id, number);

CREATE VIRTUAL TABLE record_fts USING fts5 (
    title, search_terms, tags, next_steps, body_md,
    content="record", content_rowid="seq", tokenize="porter unicode61"
);

CREATE VIEW record_search_text AS
SELECT seq, CASE WHEN folded <> '' THEN folded ELSE
    agent || char(10) || model || char(10) || model_effort || char(10) || title || char(10) || body_md
    || char(10) || replace(replace(substr(tags, 2, length(tags) - 2), '","', char(10)), '"', '')
    || char(10) || replace(replace(substr(search_terms, 2, length(search_terms) - 2), '","', char(10)), '"', '')
    || char(10) || replace(replace(substr(next_steps, 2, length(next_steps) - 2), '","', char(10)), '"', '')
    END || char(10) || char(10) AS text
FROM record;

CREATE VIRTUAL TABLE record_trigram USING fts5 (
    text, content="record_search_text", content_rowid="seq", tokenize="trigram", detail="none", columnsize="0"
);

CREATE VIEW record_ts_instant AS
SELECT seq,
    CAST(CASE
        WHEN ts NOT GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' THEN NULL
        WHEN whole GLOB '*[Zz]' OR substr(whole, -6) GLOB '[+-][0-9][0-9]:[0-9][0-9]' THEN strftime('%s', whole)
        ELSE strftime('%s', whole, 'utc') END AS INTEGER) * 1000000
    + CASE WHEN instr(ts, '.') = 0 THEN 0
        ELSE CAST(CAST('0.' || substr(ts, instr(ts, '.') + 1) AS REAL) * 1000000 + 0.0001 AS INTEGER) END AS instant
FROM (
    SELECT seq, ts, CASE WHEN instr(ts, '.') = 0 THEN ts
        ELSE substr(ts, 1, instr(ts, '.') - 1) || ltrim(substr(ts, instr(ts, '.') + 1), '0123456789') END AS whole
    FROM record
);

CREATE TRIGGER record_before_insert BEFORE INSERT ON record
BEGIN
    SELECT RAISE(ABORT, 'a record with this project and id exists already')
    WHERE EXISTS (SELECT 1 FROM record WHERE id = NEW.id AND project = NEW.project);
    SELECT RAISE(ABORT, 'a record with this seq exists already, or existed')
    WHERE NEW.seq > 0 AND (EXISTS (SELECT 1 FROM record WHERE seq = NEW.seq)
        OR EXISTS (SELECT 1 FROM tombstone WHERE what = 'record' AND seq = NEW.seq));
    INSERT INTO project (slug) SELECT NEW.project
    WHERE NOT EXISTS (SELECT 1 FROM project WHERE slug = NEW.project);
END;

CREATE TRIGGER record_before_update BEFORE UPDATE OF seq, id, project ON record
BEGIN
    SELECT RAISE(ABORT, 'seq never changes') WHERE NEW.seq <> OLD.seq;
    SELECT RAISE(ABORT, 'a record with this project and id exists already')
    WHERE EXISTS (SELECT 1 FROM record WHERE id = NEW.id AND project = NEW.project AND seq <> OLD.seq);
    INSERT INTO project (slug) SELECT NEW.project
    WHERE NOT EXISTS (SELECT 1 FROM project WHERE slug = NEW.project);
END;

CREATE TRIGGER record_after_insert AFTER INSERT ON record
BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'rev';
    UPDATE record SET
        rev = (SELECT value FROM counter WHERE name = 'rev'),
        tier_rev = 0,
        revised = 0,
        instant = coalesce(instant, (SELECT i.instant FROM record_ts_instant AS i WHERE i.seq = NEW.seq),
            CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000),
        session_id = CASE WHEN session_id <> '' THEN session_id
            WHEN rtrim(id, '0123456789') LIKE '%:' THEN substr(rtrim(id, '0123456789'), 1, length(rtrim(id, '0123456789')) - 1)
            ELSE id END,
        number = CASE WHEN number <> 0 THEN number
            WHEN rtrim(id, '0123456789') LIKE '%:' THEN CAST(substr(id, length(rtrim(id, '0123456789')) + 1) AS INTEGER)
            ELSE 0 END
    WHERE seq = NEW.seq;
    UPDATE record SET late = 1
    WHERE seq = NEW.seq AND (instant < (SELECT value FROM counter WHERE name = 'high_water')
        OR instant > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000 + 3600000000);
    UPDATE counter SET value = (SELECT instant FROM record WHERE seq = NEW.seq)
    WHERE name = 'high_water' AND (SELECT late FROM record WHERE seq = NEW.seq) = 0;
    INSERT INTO record_fts (rowid, title, search_terms, tags, next_steps, body_md)
    SELECT NEW.seq, NEW.title, NEW.search_terms, NEW.tags, NEW.next_steps, NEW.body_md
    WHERE (SELECT value FROM counter WHERE name = 'bulk') = 0;
    INSERT INTO record_trigram (rowid, text) SELECT seq, text FROM record_search_text
    WHERE seq = NEW.seq AND (SELECT value FROM counter WHERE name = 'bulk') = 0;
    INSERT INTO trajectory_event (session_id, kind, record_seq)
    SELECT session_id, 'session_record', seq FROM record WHERE seq = NEW.seq;
END;

CREATE TRIGGER record_after_update AFTER UPDATE OF id, project, ts, agent, source, model, model_effort,
    title, tags, search_terms, next_steps, body_md, redactions, schema_version, extra ON record
BEGIN
    INSERT INTO record_fts (record_fts, rowid, title, search_terms, tags, next_steps, body_md)
    VALUES ('delete', OLD.seq, OLD.title, OLD.search_terms, OLD.tags, OLD.next_steps, OLD.body_md);
    INSERT INTO record_fts (rowid, title, search_terms, tags, next_steps, body_md)
    VALUES (NEW.seq, NEW.title, NEW.search_terms, NEW.tags, NEW.next_steps, NEW.body_md);
    INSERT INTO record_trigram (record_trigram, rowid, text)
    SELECT 'delete', OLD.seq, CASE WHEN OLD.folded <> '' THEN OLD.folded ELSE
        OLD.agent || char(10) || OLD.model || char(10) || OLD.model_effort || char(10) || OLD.title || char(10) || OLD.body_md
        || char(10) || replace(replace(substr(OLD.tags, 2, length(OLD.tags) - 2), '","', char(10)), '"', '')
        || char(10) || replace(replace(substr(OLD.search_terms, 2, length(OLD.search_terms) - 2), '","', char(10)), '"', '')
        || char(10) || replace(replace(substr(OLD.next_steps, 2, length(OLD.next_steps) - 2), '","', char(10)), '"', '')
        END || char(10) || char(10)
    WHERE NEW.folded = OLD.folded;
    INSERT INTO record_trigram (rowid, text) SELECT seq, text FROM record_search_text
    WHERE seq = NEW.seq AND NEW.folded = OLD.folded;
    UPDATE counter SET value = value + 1 WHERE name = 'rev';
    UPDATE record SET
        rev = (SELECT value FROM counter WHERE name = 'rev'),
        revised = 1,
        late = CASE WHEN NEW.ts <> OLD.ts OR NEW.instant IS NOT OLD.instant THEN 1 ELSE late END,
        instant = CASE WHEN NEW.ts <> OLD.ts AND NEW.instant IS OLD.instant
            THEN coalesce((SELECT i.instant FROM record_ts_instant AS i WHERE i.seq = NEW.seq), instant) ELSE instant END
    WHERE seq = NEW.seq;
    UPDATE trajectory_event SET rev = (SELECT value FROM counter WHERE name = 'rev'), revised = 1
    WHERE record_seq = NEW.seq;
    UPDATE record SET folded = '', digest = ''
    WHERE seq = NEW.seq AND NEW.digest = OLD.digest AND NEW.digest <> '';
END;

CREATE TRIGGER record_folded AFTER UPDATE OF folded ON record WHEN NEW.folded <> OLD.folded
BEGIN
    INSERT INTO record_trigram (record_trigram, rowid, text)
    SELECT 'delete', OLD.seq, CASE WHEN OLD.folded <> '' THEN OLD.folded ELSE
        OLD.agent || char(10) || OLD.model || char(10) || OLD.model_effort || char(10) || OLD.title || char(10) || OLD.body_md
        || char(10) || replace(replace(substr(OLD.tags, 2, length(OLD.tags) - 2), '","', char(10)), '"', '')
        || char(10) || replace(replace(substr(OLD.search_terms, 2, length(OLD.search_terms) - 2), '","', char(10)), '"', '')
        || char(10) || replace(replace(substr(OLD.next_steps, 2, length(OLD.next_steps) - 2), '","', char(10)), '"', '')
        END || char(10) || char(10);
    INSERT INTO record_trigram (rowid, text) SELECT seq, text FROM record_search_text WHERE seq = NEW.seq;
END;

CREATE TRIGGER record_instant_set AFTER UPDATE OF instant ON record
WHEN OLD.instant IS NOT NULL AND NEW.instant IS NOT OLD.instant AND NEW.late = 0
BEGIN
    UPDATE record SET late = 1 WHERE seq = NEW.seq;
END;

CREATE TRIGGER record_session_moved AFTER UPDATE OF session_id ON record WHEN NEW.session_id <> OLD.session_id
BEGIN
    UPDATE trajectory_event SET session_id = NEW.session_id WHERE record_seq = NEW.seq;
END;

CREATE TRIGGER record_tier AFTER UPDATE OF tier ON record WHEN NEW.tier <> OLD.tier
BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'tier_rev';
    UPDATE record SET tier_rev = (SELECT value FROM counter WHERE name = 'tier_rev') WHERE seq = NEW.seq;
END;

CREATE TRIGGER record_after_delete AFTER DELETE ON record
BEGIN
    INSERT INTO record_fts (record_fts, rowid, title, search_terms, tags, next_steps, body_md)
    VALUES ('delete', OLD.seq, OLD.title, OLD.search_terms, OLD.tags, OLD.next_steps, OLD.body_md);
    INSERT INTO record_trigram (record_trigram, rowid, text)
    SELECT 'delete', OLD.seq, CASE WHEN OLD.folded <> '' THEN OLD.folded ELSE
        OLD.agent || char(10) || OLD.model || char(10) || OLD.model_effort || char(10) || OLD.title || char(10) || OLD.body_md
        || char(10) || replace(replace(substr(OLD.tags, 2, length(OLD.tags) - 2), '","', char(10)), '"', '')
        || char(10) || replace(replace(substr(OLD.search_terms, 2, length(OLD.search_terms) - 2), '","', char(10)), '"', '')
        || char(10) || replace(replace(substr(OLD.next_steps, 2, length(OLD.next_steps) - 2), '","', char(10)), '"', '')
        END || char(10) || char(10);
    UPDATE counter SET value = value + 1 WHERE name = 'rev';
    INSERT INTO tombstone (what, seq, rev, id, project, session_id, number)
    SELECT 'record', OLD.seq, (SELECT value FROM counter WHERE name = 'rev'), OLD.id, OLD.project, OLD.session_id, OLD.number;
    DELETE FROM trajectory_event WHERE record_seq = OLD.seq;
END;

CREATE TABLE trajectory_event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,      -- the sequence that orders a session
    event_id TEXT NOT NULL DEFAULT '',          -- '' for a record
    session_id TEXT NOT NULL DEFAULT '',
    run_id TEXT,
    work_item_id TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('session_record', 'message', 'reasoning', 'tool_call', 'tool_result', 'steering',
        'state', 'event')),
    ts TEXT NOT NULL DEFAULT '',
    payload TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(payload)),
    digest TEXT NOT NULL DEFAULT '',            -- SHA-256 of the payload's canonical JSON
    record_seq INTEGER UNIQUE,
    rev INTEGER NOT NULL DEFAULT 0,
    revised INTEGER NOT NULL DEFAULT 0,
    CHECK ((kind = 'session_record') = (record_seq IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX trajectory_event_id ON trajectory_event (session_id, event_id) WHERE record_seq IS NULL;

CREATE INDEX trajectory_event_session ON trajectory_event (session_id, seq);

CREATE INDEX trajectory_event_session_kind ON trajectory_event (session_id, kind, seq);

CREATE INDEX trajectory_event_kind ON trajectory_event (kind, seq);

CREATE INDEX trajectory_event_run ON trajectory_event (run_id, seq) WHERE run_id IS NOT NULL;

CREATE INDEX trajectory_event_work_item ON trajectory_event (work_item_id, seq) WHERE work_item_id IS NOT NULL;

CREATE INDEX trajectory_event_revised ON trajectory_event (rev, seq) WHERE revised = 1;

CREATE TRIGGER trajectory_event_before_insert BEFORE INSERT ON trajectory_event
BEGIN
    SELECT RAISE(ABORT, 'an event with this session and event id exists already')
    WHERE NEW.record_seq IS NULL AND EXISTS (SELECT 1 FROM trajectory_event
        WHERE session_id = NEW.session_id AND event_id = NEW.event_id AND record_seq IS NULL);
    SELECT RAISE(ABORT, 'an event with this seq or record exists already')
    WHERE (NEW.seq > 0 AND EXISTS (SELECT 1 FROM trajectory_event WHERE seq = NEW.seq))
        OR EXISTS (SELECT 1 FROM trajectory_event WHERE record_seq = NEW.record_seq);
END;

CREATE TRIGGER trajectory_event_after_insert AFTER INSERT ON trajectory_event
BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'rev' AND NEW.record_seq IS NULL;
    UPDATE trajectory_event SET rev = (SELECT value FROM counter WHERE name = 'rev'), revised = 0 WHERE seq = NEW.seq;
END;

CREATE TRIGGER trajectory_event_after_update
AFTER UPDATE OF seq, event_id, session_id, run_id, work_item_id, kind, ts, payload ON trajectory_event
WHEN NEW.record_seq IS NULL
BEGIN
    SELECT RAISE(ABORT, 'seq never changes') WHERE NEW.seq <> OLD.seq;
    UPDATE counter SET value = value + 1 WHERE name = 'rev';
    UPDATE trajectory_event SET rev = (SELECT value FROM counter WHERE name = 'rev'), revised = 1 WHERE seq = NEW.seq;
END;

CREATE TRIGGER trajectory_event_after_delete AFTER DELETE ON trajectory_event
BEGIN
    UPDATE counter SET value = value + 1 WHERE name = 'rev' AND OLD.record_seq IS NULL;
    INSERT INTO tombstone (what, seq, rev, id, session_id)
    SELECT 'event', OLD.seq, (SELECT value FROM counter WHERE name = 'rev'), OLD.event_id, OLD.session_id;
END;

CREATE TABLE redaction_audit (
    audit_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    action TEXT NOT NULL,                       -- capture, import, migrate, trajectory, literal, rescan, delete, restore
    actor TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    record_seq INTEGER,
    event_seq INTEGER,
    field TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT '',
    rule TEXT NOT NULL DEFAULT '',
    start INTEGER,
    "end" INTEGER,
    placeholder TEXT NOT NULL DEFAULT '',
    fingerprint TEXT NOT NULL DEFAULT '',       -- keyed, so that equal values can be told without the value
    counts TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(counts))
) STRICT;

CREATE INDEX redaction_audit_record ON redaction_audit (record_seq);

CREATE INDEX redaction_audit_event ON redaction_audit (event_seq);

CREATE TABLE redacted_value (
    fingerprint TEXT PRIMARY KEY,
    audit_id INTEGER REFERENCES redaction_audit (audit_id),
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

CREATE TABLE redaction_pending (
    pending_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    audit_id INTEGER REFERENCES redaction_audit (audit_id),
    fingerprint TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE spooled (
    name TEXT PRIMARY KEY,
    seq INTEGER NOT NULL
) STRICT;

CREATE TABLE file_manifest (
    path TEXT PRIMARY KEY,
    kind TEXT NOT NULL,                         -- skill, hook, marker, exclude, export, backup, ...
    owner TEXT NOT NULL DEFAULT '',             -- the host, or the format
    root TEXT NOT NULL DEFAULT '',              -- project root, or '' for the user's level
    sha256 TEXT NOT NULL DEFAULT '',
    written_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    detail TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(detail))
) STRICT;

CREATE TABLE archive_partition (
    project TEXT NOT NULL,
    month TEXT NOT NULL,                        -- YYYY-MM, UTC
    path TEXT NOT NULL,                         -- below the home
    rows INTEGER NOT NULL,
    rev INTEGER NOT NULL,                       -- highest rev inside
    digest TEXT NOT NULL,                       -- SHA-256 over the records' digests in seq order
    sha256 TEXT NOT NULL,                       -- of the file
    written_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (project, month)
) STRICT, WITHOUT ROWID;

CREATE TABLE retag (
    retag_id INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    kind TEXT NOT NULL,                         -- merge, retag
    source TEXT NOT NULL,
    source_uuid TEXT NOT NULL DEFAULT '',
    target TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(detail)),
    undone_at TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE retag_record (
    retag_id INTEGER NOT NULL REFERENCES retag (retag_id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    old_project TEXT NOT NULL,
    old_id TEXT NOT NULL,
    PRIMARY KEY (retag_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE taken_over (
    fingerprint TEXT PRIMARY KEY,
    seq INTEGER                                 -- the record here; NULL for a line of its audit
) STRICT, WITHOUT ROWID;

CREATE VIEW short AS
SELECT seq, id, project, ts, agent, source, title, tags, next_steps, body_md FROM record WHERE tier = 'short';

CREATE VIEW long AS
SELECT seq, id, project, ts, agent, source, title, tags, next_steps, body_md FROM record WHERE tier = 'long';

CREATE VIEW archive AS
SELECT seq, id, project, ts, agent, source, title, tags, next_steps, body_md FROM record WHERE tier = 'archive';

CREATE VIEW recent AS
SELECT seq, id, project, ts, agent, source, title, tags, next_steps, body_md FROM record
ORDER BY instant DESC, seq DESC LIMIT 100;
