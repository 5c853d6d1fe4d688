"""`qiju doctor`: look at everything Qiju depends on; with --fix, repair what can be repaired."""

from __future__ import annotations

from qiju import render
from qiju.cli.context import Context
from qiju.cli.options import Command, Option
from qiju.errors import QijuError, UsageError, VerificationFailed
from qiju.jsontext import JsonValue
from qiju.wording import counted


def run(context: Context, *, fix: bool, dry_run: bool, json: bool) -> int:
    """Examine and print; exit 4 when something is wrong (with --fix: still wrong afterwards)."""
    if dry_run and not fix:
        raise UsageError("--dry-run goes with --fix", hint="without --fix nothing is changed anyway")
    return _fix(context, dry_run, json) if fix else _examine(context, json)


def _examine(context: Context, json: bool) -> int:
    from qiju.keeping.doctor import FAIL, Subject, examine
    from qiju.place.home import user_folder

    try:
        root = context.root.path
    except QijuError:
        root = None  # a deleted working folder: the rest can still be looked at
    try:
        config = context.config
    except QijuError:
        config = None  # named by the check of the configuration
    found = examine(Subject(context.home, context.env, user_folder(context.env), root, config))
    bad = [one for one in found if one.status == FAIL]
    if json:
        findings: list[JsonValue] = [one.to_json() for one in found]
        print(render.json_text({"ok": not bad, "findings": findings}))
    else:
        for one in found:
            print(render.one_line(f"{one.status:4}  {one.check}: {one.message}"))
            if one.hint:
                print(render.one_line(f"        {one.hint}"))
    if bad:
        count = f"{len(bad)} {'thing is' if len(bad) == 1 else 'things are'} wrong"
        raise VerificationFailed(count, hint="'qiju doctor --fix --dry-run' prints what would be repaired")
    return 0


def _fix(context: Context, dry_run: bool, json: bool) -> int:
    from qiju.keeping import repair

    plan = repair.plan(context.home, context.config)
    if not json:
        for one in plan:
            print(render.one_line(f"plan  {one.name}: {one.what}"))
        if not plan:
            print("nothing to repair")
    if dry_run:
        if json:
            rows: list[JsonValue] = [{"name": one.name, "what": one.what} for one in plan]
            print(render.json_text({"plan": rows, "dry_run": True}))
        return 0
    done = repair.apply(context.home, plan, context.config)
    if json:
        print(render.json_text(done.to_json() | {"dry_run": False}))
    elif plan:
        if done.backup is not None:
            print(render.one_line(f"kept  the store as it was: {done.backup}"))
        print(f"done  {counted(len(plan), 'repair')}")
        if done.backup is not None:
            print(f"proof {counted(done.before, 'record')} could be read before, {done.after} after; none is missing")
        for left in done.left:
            print(render.one_line(f"left  {left}"))
    for note in done.notes:
        context.note(note)
    if done.left:
        raise VerificationFailed(
            f"{len(done.left)} faults are left that no repair mends",
            hint="'qiju backup --list' lists backups; 'qiju restore' goes back to one",
        )
    return 0


COMMAND = Command(
    "doctor",
    "Look at the store and everything around it; say what is wrong and what to do.",
    (
        Option("fix", ("--fix",), "Print a plan, back up, repair, and prove that no record went missing.", bool, False),
        Option("dry_run", ("--dry-run",), "With --fix: print the plan only.", bool, False),
        Option("json", ("--json",), "Print everything as JSON.", bool, False),
    ),
    run,
)
