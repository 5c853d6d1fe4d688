"""The trajectory API: a session's append-only facts, in bounded, snapshot-fixed pages under a privacy view."""
