"""The skills that Qiju gives to agents: plain `SKILL.md` files beside this module, valid under the Agent Skills spec.

What is installed is the file itself plus one line of metadata, a digest of everything else in it. So a skill file can
be judged wherever it turns up, also in a clone on a machine whose store has never seen it: unchanged since some Qiju
wrote it, or edited by somebody. Line endings and a byte order mark, which a checkout may change, are not an edit.

`predecessor.json` holds the digests of the skill files that the predecessor's releases wrote; they count as stale.
`triggers/` holds sentences that should and should not call each skill, for whoever tests a description.
"""

from __future__ import annotations

import json
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

NAMES: tuple[str, ...] = ("qiju-log", "qiju-review", "qiju-search")
FILE_NAME = "SKILL.md"

_HERE = Path(__file__).parent
_DIGEST_KEY = "  qiju-digest: "
_FENCE = "---\n"


class SkillState(StrEnum):
    """What lies at the place of a skill."""

    MISSING = "missing"
    CURRENT = "current"  # exactly what this version installs
    STALE = "stale"  # written by another version, or the predecessor, and not touched since
    MODIFIED = "modified"  # a Qiju skill that somebody edited
    FOREIGN = "foreign"  # not a Qiju skill at all


def source(name: str) -> str:
    """The skill as it lies in the package."""
    return (_HERE / name / FILE_NAME).read_text(encoding="utf-8")


def installed(name: str) -> bytes:
    """The bytes that are written for a host: the source with its digest in the front matter."""
    text = source(name)
    end = text.index(_FENCE, len(_FENCE))
    return f'{text[:end]}metadata:\n{_DIGEST_KEY}"{_digest(text)}"\n{text[end:]}'.encode()


def triggers(name: str) -> dict[str, list[str]]:
    """`should` and `should_not`: sentences of users that call the skill, and near misses that do not."""
    loaded = json.loads((_HERE / "triggers" / f"{name}.json").read_text(encoding="utf-8"))
    return {key: [str(sentence) for sentence in loaded[key]] for key in ("should", "should_not")}


def judge(name: str, content: bytes | None) -> SkillState:
    """What `content`, found at the place of skill `name`, is. None means that there is no file."""
    if content is None:
        return SkillState.MISSING
    text = _normal(content)
    if text == _normal(installed(name)):
        return SkillState.CURRENT
    body, claimed = _take_digest(text)
    if claimed:
        return SkillState.STALE if claimed == _digest(body) else SkillState.MODIFIED
    if sha256(text.encode()).hexdigest() in _predecessor().get(name, ()):
        return SkillState.STALE
    # An edited file of the predecessor has no digest; it still has its name and speaks of its command.
    if f"\nname: {name}\n" in text[:2000] and "qiju " in text:
        return SkillState.MODIFIED
    return SkillState.FOREIGN


def judge_retired(content: bytes) -> SkillState:
    """The same for a skill that no version installs any more, found under a name that only the predecessor used."""
    text = _normal(content)
    known = {digest for digests in _predecessor().values() for digest in digests}
    if sha256(text.encode()).hexdigest() in known:
        return SkillState.STALE
    body, claimed = _take_digest(text)
    if claimed and claimed == _digest(body):
        return SkillState.STALE
    return SkillState.MODIFIED if "qiju " in text else SkillState.FOREIGN


def _predecessor() -> dict[str, list[str]]:
    loaded: dict[str, list[str]] = json.loads((_HERE / "predecessor.json").read_text(encoding="utf-8"))
    return loaded


def _normal(content: bytes) -> str:
    """The text with `\\n` line ends, without byte order mark, with one line end at its end."""
    text = content.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return text.rstrip("\n") + "\n"


def _digest(text: str) -> str:
    return sha256(_normal(text.encode()).encode()).hexdigest()


def _take_digest(text: str) -> tuple[str, str]:
    """The text as it was before its digest went in, and that digest; an empty digest when there is none."""
    start = text.find(f"metadata:\n{_DIGEST_KEY}", 0, 4000)
    if start < 0:
        return text, ""
    line_start = start + len("metadata:\n")
    line_end = text.index("\n", line_start) + 1
    claimed = text[line_start + len(_DIGEST_KEY) : line_end].strip().strip('"')
    return text[:start] + text[line_end:], claimed
