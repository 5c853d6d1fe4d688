"""The trajectory API: the append-only facts of a session, read in bounded, snapshot-fixed pages under a privacy view."""
