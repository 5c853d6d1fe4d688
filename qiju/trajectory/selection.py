"""A trajectory query as SQL, for every table that has the columns seq, session_id, run_id, work_item_id and kind.

Paging goes by sequence, so each access path is an index that ends in `seq`: the walk starts behind the last key and
stops after a page, whatever the history's size. A query for several kinds is one short walk per kind, merged; a plain
`kind IN (...)` would sort everything or step through all the other kinds. The unary plus keeps SQLite from choosing
an index that does not deliver the order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qiju.trajectory.types import TrajectoryQuery

# The columns a query can name, the narrowest first: the first one that the query uses drives the walk.
COLUMNS = ("work_item_id", "run_id", "session_id")


def page_sql(table: str, query: TrajectoryQuery) -> tuple[str, dict[str, str]]:
    """A SELECT of `seq` in ascending order and its bindings; the caller adds `:after`, `:upto` and `:count`."""
    bound = {name: value for name in COLUMNS if (value := getattr(query, name)) is not None}
    driver = next(iter(bound), None)
    clauses = [f"{'' if name == driver else '+'}{name} = :{name}" for name in bound]
    window = "seq > :after AND seq <= :upto"
    bindings = dict(bound)
    kinds = {f"kind{index}": kind.value for index, kind in enumerate(dict.fromkeys(query.kinds))}
    bindings.update(kinds)
    if kinds and driver in (None, "session_id"):
        walks = [_walk(table, [*clauses, f"kind = :{name}", window]) for name in kinds]
        if len(walks) == 1:
            return walks[0], bindings
        union = " UNION ALL ".join(f"SELECT seq FROM ({walk})" for walk in walks)
        return f"SELECT seq FROM ({union}) ORDER BY seq LIMIT :count", bindings
    if kinds:
        clauses.append(f"+kind IN ({', '.join(':' + name for name in kinds)})")
    return _walk(table, [*clauses, window]), bindings


def _walk(table: str, clauses: list[str]) -> str:
    return f"SELECT seq FROM {table} WHERE {' AND '.join(clauses)} ORDER BY seq LIMIT :count"
