-- Format 1. Times are nanoseconds since 1970; codes are explained in `journal/stored.rs`.

-- The names of channels, the reasons of deliveries, and the plans of events, all of which repeat.
CREATE TABLE words (
    id   INTEGER PRIMARY KEY,
    word TEXT NOT NULL UNIQUE
);

-- `run` is a `runs.key`, `plan` a `plans.plan`. `body` is last, so that a filter on the other columns does not read
-- the pages of a long text.
CREATE TABLE events (
    seq     INTEGER PRIMARY KEY,
    id      BLOB    NOT NULL,
    at      INTEGER NOT NULL,
    level   INTEGER NOT NULL,
    kind    INTEGER NOT NULL,
    context TEXT    NOT NULL,
    client  TEXT,
    run     INTEGER,
    key     BLOB,
    plan    INTEGER,
    body    TEXT    NOT NULL
);
CREATE UNIQUE INDEX event_ids ON events (id);
CREATE UNIQUE INDEX event_keys ON events (key) WHERE key IS NOT NULL;
CREATE INDEX event_runs ON events (run) WHERE run IS NOT NULL;
CREATE INDEX event_plans ON events (plan) WHERE plan IS NOT NULL;

-- Where an event goes and why, all in words. A delivery that is due from the start has no row until it is taken: it
-- is fresh as long as its event has a plan with the channel and comes after the channel's position.
CREATE TABLE plans (
    plan    INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    reason  INTEGER NOT NULL,
    PRIMARY KEY (plan, channel)
) WITHOUT ROWID;
CREATE TABLE positions (
    channel INTEGER PRIMARY KEY,
    seq     INTEGER NOT NULL
);

-- All other deliveries: those that were taken, and those of runs and of later times from the start.
-- `attempts` is the log of the last ones, `tries` counts all since the last retry.
CREATE TABLE deliveries (
    seq        INTEGER NOT NULL,
    channel    INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    reason     INTEGER NOT NULL,
    tries      INTEGER NOT NULL,
    repeated   INTEGER NOT NULL,
    run        INTEGER,
    attempts   TEXT,
    message_id TEXT,
    PRIMARY KEY (seq, channel)
) WITHOUT ROWID;
-- What is due and what is in flight: a restart reads nothing else.
CREATE INDEX unfinished ON deliveries (state, channel, due_at) WHERE state < 2;
CREATE INDEX given_up ON deliveries (seq) WHERE state = 3;
-- The deliveries of one run to one channel.
CREATE INDEX lines ON deliveries (run, channel, state) WHERE run IS NOT NULL;
CREATE INDEX receipts ON deliveries (run, channel) WHERE run IS NOT NULL AND message_id IS NOT NULL;

-- `state` is NULL where only deliveries know the run. `latest` is the event of its latest step.
CREATE TABLE runs (
    key    INTEGER PRIMARY KEY,
    id     TEXT NOT NULL UNIQUE,
    latest INTEGER,
    state  INTEGER,
    steps  INTEGER NOT NULL,
    body   TEXT
);
CREATE INDEX run_changes ON runs (latest);

-- The first event of each hour in which one was reported: where to begin when only newer ones are asked for.
CREATE TABLE hours (
    hour INTEGER PRIMARY KEY,
    seq  INTEGER NOT NULL
);

-- The last event that was forgotten, so that its number is not given again.
CREATE TABLE forgotten (seq INTEGER NOT NULL);
INSERT INTO forgotten VALUES (0);
