"""The record that an id, or the beginning of one, stands for: `show` and the MCP server ask the same way."""

from __future__ import annotations

from qiju.errors import AmbiguousId, NotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from qiju.rows import Stored
    from qiju.store import Store

_CANDIDATES = 10


def lookup(store: Store, identity: str, project: str | None) -> Stored:
    """The one record. Raises `NotFound`, or `AmbiguousId` naming the candidates."""
    exact = store.by_id(identity, project)
    if len(exact) == 1:
        return exact[0]
    if exact:
        projects = ", ".join(one.record.project for one in exact)
        raise AmbiguousId(
            f"{identity} exists in {len(exact)} projects: {projects}", hint="say which with --project NAME"
        )
    near = store.ids_with_prefix(identity, project, _CANDIDATES + 1) if identity.strip() else []
    if not near:
        where = f" in project {project}" if project else ""
        raise NotFound(f"there is no record {identity!r}{where}", hint="'qiju search' prints exact ids")
    if len(near) == 1:
        return store.by_id(near[0][0], near[0][1])[0]
    names = ", ".join(f"{one} ({slug})" for one, slug in near[:_CANDIDATES]) + (
        " ..." if len(near) > _CANDIDATES else ""
    )
    raise AmbiguousId(f"{identity!r} is the beginning of several ids: {names}", hint="give one of them whole")
