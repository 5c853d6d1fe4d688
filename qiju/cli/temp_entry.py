"""`qiju temp-entry`: a place for an agent to write a record before it is logged."""

from __future__ import annotations

from qiju.cli.context import Context
from qiju.cli.options import Command, Option


def run(context: Context, *, agent: str | None, project: str | None) -> int:
    """Make the draft and print its path, and nothing else, on standard output."""
    from qiju import staging
    from qiju.place import identity

    if project is not None:
        # A draft that `log` would refuse for its project is refused here, before anything is created.
        context.project(project)
    name = identity.agent(agent, context.env, context.marker, configured=context.config.agent or None)
    print(staging.allocate(context.root.path, "" if name == "unknown" else name))
    return 0


COMMAND = Command(
    "temp-entry",
    "Make an empty private file for a record, in .qiju/tmp of the project, and print its path.",
    (
        Option("agent", ("--agent",), "The agent's name, as a label in the file's name.", complete="agent"),
        Option("project", ("--project",), "Project that the record is meant for.", complete="project"),
    ),
    run,
)
