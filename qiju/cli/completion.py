"""What the shell offers after Tab: slugs, hosts, agents, tags and ids that the store knows. Never an error."""

from __future__ import annotations

from qiju.errors import QijuError

MOST = 50

_QUERIES = {
    "project": "SELECT slug FROM project WHERE substr(slug, 1, length(?1)) = ?1 ORDER BY slug LIMIT ?2",
    "agent": "SELECT DISTINCT agent FROM record WHERE substr(agent, 1, length(?1)) = ?1 ORDER BY agent LIMIT ?2",
    "tag": "SELECT DISTINCT value FROM record, json_each(record.tags) WHERE substr(value, 1, length(?1)) = ?1"
    " ORDER BY value LIMIT ?2",
    "id": "SELECT id FROM record WHERE id >= ?1 AND id < ?1 || char(1114111) ORDER BY id LIMIT ?2",
}


def candidates(what: str, beginning: str) -> list[str]:
    """Values of a kind (`project`, `agent`, `tag`, `id`, `host`) with this beginning, at most `MOST`."""
    if what == "host":
        from qiju.hosts import HOSTS

        return [name for host in HOSTS for name in (host.name, *host.aliases) if name.startswith(beginning)][:MOST]
    from qiju.cli.context import Context

    try:
        with Context().open_for_reading() as store, store.db.read() as connection:
            return [str(row[0]) for row in connection.execute(_QUERIES[what], (beginning, MOST))]
    except QijuError:
        return []  # a shell that completes must not print errors into the line being typed
