"""Write docs/reference/redaction-rules.md from the rule files; with --check, fail when the page is out of date."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from qiju.redaction.rules import RULE_SETS, Rule, builtin_rules, detectors, rules_dir

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "redaction-rules.md"

HEAD = """# Redaction rules

<!-- Written by scripts/docs_redaction_rules.py from qiju/redaction/rules/. Change the rules there, then run it. -->

Everything that is stored passes the redaction engine first: every string of a record, object keys included. What a rule
recognises is replaced by a marker such as `[REDACTED:github_token:1a2b3c4d]`: the kind, and eight hexadecimal digits of
an HMAC of the value under the store's key. Equal values get equal markers; without the key no guess can be tested.

Built-in: {rules} pattern rules and {detectors} detectors written in code. A rule runs when one of its keywords occurs.
Its confidence says how surely a match is a secret; values listed under `redaction.allow` are left by rules of low
confidence only.

JSON numbers keep their type. The exception is a number that its own key calls private: a password or PIN, a card
number that passes Luhn's check, a phone or social security number.

## Rules of your own

```toml
[[redaction.rules]]
id = "acme-ticket"              # lower case letters, digits, hyphens; required
pattern = 'ACME-(\\d{{6}})'       # a Python regular expression; required
group = 1                       # the part to replace; 0, the whole match, if not given
kind = "ticket"                 # the word in the marker; "custom" if not given
keywords = ["acme"]             # lower case; the rule runs only when one occurs; always if not given
case = false                    # true if not given
before = "word"                 # what may not stand before a match: word, ident, digits, colon, any
confidence = "medium"           # high if not given
```

A rule that is not valid is refused by its id: an unknown field, a bad expression, one that matches the empty text, or
one whose time could grow much faster than its input (a repetition without a bound inside another, or two in a row that
can take the same characters).

"""

TITLES = {
    "tokens": ("Tokens", "Values with a shape of their own, most of them known by their prefix."),
    "structures": (
        "Structures",
        "Values known by where they stand: headers, URLs, command lines, configuration files.",
    ),
    "personal": ("Personal data", "Numbers with check digits, addresses, phone numbers."),
}


def row(rule: Rule) -> str:
    shown = [keyword.replace("|", "\\|") for keyword in rule.keywords[:6]]
    keywords = ", ".join(f"`{keyword}`" for keyword in shown) or "always runs"
    if len(rule.keywords) > 6:
        keywords += ", ..."
    check = rule.validator.replace("_", " ")
    return f"| `{rule.id}` | {rule.version} | `{rule.kind}` | {rule.confidence} | {keywords} | {check} |"


def page() -> str:
    import json

    rules = {rule.id: rule for rule in builtin_rules()}
    parts = [HEAD.format(rules=len(rules), detectors=len(detectors()))]
    parts.append("## Detectors\n\n| id | version | kind | what it finds |\n|---|---|---|---|\n")
    parts += [f"| `{d.id}` | {d.version} | `{d.kind}` | {d.description} |\n" for d in detectors()]
    for name in RULE_SETS:
        title, lead = TITLES[name]
        entries = json.loads((rules_dir() / f"{name}.json").read_text(encoding="utf-8"))
        parts.append(f"\n## {title}\n\n{lead}\n\n| id | version | kind | confidence | keywords | check |\n")
        parts.append("|---|---|---|---|---|---|\n")
        parts += [row(rules[entry["id"]]) + "\n" for entry in sorted(entries, key=lambda e: str(e["id"]))]
    return "".join(parts)


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            print(f"{PAGE.name} is out of date: run scripts/docs_redaction_rules.py", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
