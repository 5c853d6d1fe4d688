"""The rules are data: each is well formed, bounded, and shows what it matches and what it does not."""

from __future__ import annotations

import json
import re

import pytest

from qiju.errors import UsageError
from qiju.redaction import Engine, matching, validators
from qiju.redaction.rules import (
    BEFORE,
    CONFIDENCE,
    RULE_SETS,
    Rule,
    builtin_rules,
    detectors,
    load_user_rules,
    rules_dir,
)
from qiju.redaction.shadow import lower, shadow


def examples() -> dict[str, dict[str, list[list[str]]]]:
    out: dict[str, dict[str, list[list[str]]]] = {}
    for name in RULE_SETS:
        out.update(json.loads((rules_dir() / "examples" / f"{name}.json").read_text(encoding="utf-8")))
    return out


EXAMPLES = examples()
RULES = {rule.id: rule for rule in builtin_rules()}


def matches(rule: Rule, text: str) -> bool:
    twin = shadow(text)
    low = lower(twin)
    return bool(matching.run(matching.Index([rule]).candidates(low), twin, low))


def test_there_are_at_least_150_vendors() -> None:
    assert len(json.loads((rules_dir() / "tokens.json").read_text(encoding="utf-8"))) >= 150


def test_ids_are_unique_across_rules_and_detectors() -> None:
    ids = [rule.id for rule in builtin_rules()] + [d.id for d in detectors()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("rule", builtin_rules(), ids=lambda rule: rule.id)
def test_rule_is_well_formed(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", rule.id)
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,38}", rule.kind)
    assert rule.version >= 1
    assert all(k == k.lower() and k for k in rule.keywords)
    assert rule.confidence in CONFIDENCE
    assert rule.before in BEFORE
    assert rule.within in {"", *matching.WITHIN}
    assert not rule.validator or callable(validators.find(rule.validator))
    assert rule.group <= rule.compiled().groups
    if not rule.case:
        literal = re.sub(r"\\.", "", rule.pattern)
        assert literal == literal.lower(), "searched in lower-case text, so it can hold no capital"


@pytest.mark.parametrize("rule", builtin_rules(), ids=lambda rule: rule.id)
def test_every_repetition_is_bounded(rule: Rule) -> None:
    parser, constants = re._parser, re._constants  # type: ignore[attr-defined]

    def walk(items: object) -> None:
        for op, arg in items:  # type: ignore[attr-defined]
            if op in (constants.MAX_REPEAT, constants.MIN_REPEAT):
                assert arg[1] is not constants.MAXREPEAT
                walk(arg[2])
            elif op is constants.SUBPATTERN:
                walk(arg[-1])
            elif op is constants.BRANCH:
                for branch in arg[1]:
                    walk(branch)
            elif op in (constants.ASSERT, constants.ASSERT_NOT):
                assert arg[0] == 1, "a look-behind keeps the module from jumping to the literal; use `before`"
                walk(arg[1])

    walk(parser.parse(rule.pattern))


@pytest.mark.parametrize("rule_id", sorted(RULES))
def test_rule_matches_its_examples_and_not_its_near_misses(rule_id: str) -> None:
    rule = RULES[rule_id]
    entry = EXAMPLES[rule_id]
    assert entry["must_match"]
    assert entry["must_not_match"]
    for pieces in entry["must_match"]:
        assert matches(rule, "".join(pieces))
        if rule.anchored:
            text = "".join(pieces).lower()
            found = re.search(rule.pattern, text if not rule.case else "".join(pieces), re.ASCII)
            assert found is not None
            assert text[found.start() :].startswith(rule.keywords)
    for pieces in entry["must_not_match"]:
        assert not matches(rule, "".join(pieces))


def test_examples_of_secrets_leave_the_whole_engine_redacted(engine: Engine) -> None:
    for rule_id, entry in EXAMPLES.items():
        for pieces in entry["must_match"]:
            assert engine.redact_text("".join(pieces)).findings, rule_id


# --- rules of the user -----------------------------------------------------------------------------------------------


def test_user_rule_is_applied_and_named_in_the_finding() -> None:
    rules = load_user_rules([{"id": "acme-ticket", "kind": "ticket", "pattern": r"ACME-(\d{6})", "group": 1}])
    done = Engine(b"k", user_rules=rules).redact_text("see ACME-123456 now")
    assert [(f.rule, f.kind) for f in done.findings] == [("acme-ticket", "ticket")]
    assert done.text.startswith("see ACME-[REDACTED:ticket:")


def test_user_rule_may_ignore_case_and_use_look_behind() -> None:
    rules = load_user_rules([{"id": "acme", "pattern": r"(?<=code )abc\d+", "case": False, "keywords": ["CODE"]}])
    assert "ABC77" not in Engine(b"k", user_rules=rules).redact_text("Code ABC77").text


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"pattern": "x"}, "number 1"),
        ({"id": "Bad Id", "pattern": "x"}, "number 1"),
        ({"id": "acme"}, "'acme'"),
        ({"id": "acme", "pattern": "("}, "'acme'"),
        ({"id": "acme", "pattern": "x*"}, "empty text"),
        ({"id": "acme", "pattern": "(a+)+b"}, "'acme'"),
        ({"id": "acme", "pattern": "a+a+b"}, "'acme'"),
        ({"id": "acme", "pattern": r"(\w+\s?)+:"}, "'acme'"),
        ({"id": "acme", "pattern": "x", "group": 1}, "'acme'"),
        ({"id": "acme", "pattern": "x", "colour": 1}, "colour"),
        ({"id": "acme", "pattern": "x", "kind": "Not A Kind"}, "'acme'"),
        ({"id": "acme", "pattern": "x", "keywords": "x"}, "'acme'"),
        ({"id": "acme", "pattern": "x", "confidence": "certain"}, "'acme'"),
        ({"id": "github-token", "pattern": "x"}, "already used"),
    ],
)
def test_bad_user_rule_is_refused_by_its_id(table: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        load_user_rules([table])


@pytest.mark.parametrize("pattern", [r"acme_[a-z0-9]{20,40}", r"\bACME-\d+\b", r"key:\s*\w+", r"(?:a|b)c+d"])
def test_ordinary_user_patterns_are_accepted(pattern: str) -> None:
    assert load_user_rules([{"id": "acme", "pattern": pattern}])[0].pattern == pattern
