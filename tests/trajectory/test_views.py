"""The public view is an allow-list: what no table names does not pass, what passes is scrubbed, all is counted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qiju import jsontext
from qiju.trajectory import LossEntry, LossReport, PrivacyView, RecordKind, Trajectory, TrajectoryRecord
from qiju.trajectory.public_fields import PUBLIC
from qiju.trajectory.scrub import names_in, scrub_plain
from qiju.trajectory.views import Projector, Scrubbed

PUBLIC_VIEW = PrivacyView.REDACTED_PUBLIC
TOKEN = "gh" + "p_" + "0aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC1aE3xk"


def record(kind: str, payload: dict, **ids: str) -> TrajectoryRecord:
    return TrajectoryRecord(
        7,
        ids.get("record_id", "r"),
        ids.get("session_id", "s"),
        ids.get("run_id"),
        None,
        RecordKind(kind),
        ids.get("ts", "2026-03-01T00:00:00Z"),
        payload,
        jsontext.digest(jsontext.canonical(payload)),
    )


@pytest.fixture
def public() -> Projector:
    return Projector(PUBLIC_VIEW, scrub_plain())


def losses(projector: Projector) -> dict[tuple[str, str], int]:
    return {(entry.field, entry.reason): entry.count for entry in projector.loss().entries}


def test_unknown_keys_do_not_pass_at_any_depth(public):
    """Nor do their names: a key can be a person or a token. They are counted under `*`."""
    payload = {
        "role": "user",
        "content": [{"type": "text", "text": "hi", "alice_key": 1}, {"type": "image", "source": {"data": "AAAA"}}],
        "alice_token": "x",
        "cwd": "/srv/thing",
    }
    shown = public.project(record("message", payload))
    assert shown.payload == {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image"}]}
    assert losses(public) == {
        ("payload.content[].*", "not_allowed"): 1,
        ("payload.content[].source", "not_allowed"): 1,
        ("payload.*", "not_allowed"): 1,
        ("payload.cwd", "not_allowed"): 1,
    }
    assert "alice" not in jsontext.canonical(public.loss().to_dict())


@given(
    kind=st.sampled_from(list(RecordKind)),
    payload=st.dictionaries(
        st.sampled_from(["content", "text", "arguments", "output", "type", "zq", "data", "tags", "body_md"]),
        st.recursive(
            st.none() | st.booleans() | st.integers(0, 99) | st.just("zqsecret word"),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["type", "text", "zq", "content", "command", "env"]), inner, max_size=3
                )
            ),
            max_leaves=12,
        ),
        max_size=5,
    ),
)
@settings(max_examples=60, deadline=None)
def test_whatever_passes_is_in_the_table(kind, payload):
    """Keys of the projection are those of the kind's table; nothing is added; the digest is the projection's."""
    projector = Projector(PUBLIC_VIEW, lambda text, _name, _names: Scrubbed(text))
    shown = projector.project(record(kind, payload))

    def allowed(value, shape):
        shapes = shape if isinstance(shape, tuple) else (shape,)
        if isinstance(value, dict):
            tables = [one for one in shapes if isinstance(one, dict)]
            return bool(tables) and all(
                key in tables[0] and allowed(item, tables[0][key]) for key, item in value.items()
            )
        if isinstance(value, list):
            return all(allowed(item, tuple(one[0] for one in shapes if isinstance(one, list))) for item in value)
        return any(isinstance(one, str) for one in shapes)

    assert allowed(shown.payload, PUBLIC[kind])
    assert "zq" not in shown.payload
    assert shown.digest == jsontext.digest(jsontext.canonical(shown.payload))
    if shown.payload != payload:
        assert not projector.loss().lossless


@pytest.mark.parametrize(
    "private",
    [
        f"token {TOKEN} here",
        "see /home/alicewong/project/x.py",
        "see C:\\Users\\alicewong\\x",
        "mail alicewong@example.org now",
        "host at 192.168.17.4 answered",
    ],
)
@pytest.mark.parametrize(
    "kind", ["message", "tool_call", "tool_result", "reasoning", "steering", "session_record", "state"]
)
def test_private_text_does_not_pass(public, private, kind):
    """Secrets, home folders, e-mail, addresses: in every kind, wherever text may stand, ids included."""
    payload = {
        "content": private,
        "text": private,
        "arguments": {"command": private, "files": [private]},
        "output": {"stdout": private, "content": [{"type": "text", "text": private}]},
        "body_md": private,
        "tags": [private],
        "title": private,
        "name": private,
        "type": private,
    }
    shown = public.project(record(kind, payload, record_id=private, session_id=private, run_id=private, ts=private))
    text = jsontext.canonical(shown.to_dict()) + jsontext.canonical(public.loss().to_dict())
    for secret in (TOKEN, "alicewong", "192.168.17.4"):
        assert secret not in text
    assert not public.loss().lossless


def test_names_that_a_record_gives_away_go_wherever_they_stand(public):
    """A history of another machine: the owner of its home folder and the names of its shell prompt."""
    payload = {
        "role": "user",
        "content": "mirabelle@thinkbox7:~/x$ cd /home/mirabelle\nThe box thinkbox7 is Mirabelle's.",
    }
    shown = jsontext.canonical(public.project(record("message", payload)).payload).lower()
    assert "mirabelle" not in shown
    assert "thinkbox7" not in shown
    other = public.project(record("message", {"role": "user", "content": "mirabelle plums"}))
    assert other.payload["content"] == "mirabelle plums"
    assert names_in("/home/runner/x and /home/user/y") == frozenset()


def test_names_hidden_in_a_dropped_field_are_known(public):
    """A working folder does not pass itself, but tells whose name is private in the text beside it."""
    payload = {"role": "user", "content": "ask mirabelle", "cwd": "/home/mirabelle/x"}
    assert "mirabelle" not in public.project(record("message", payload)).payload["content"]


def test_numbers_that_are_secrets_do_not_pass(public):
    """A card number is one as a number, too; other numbers stay numbers."""
    payload = {"arguments": {"limit": 4111111111111111, "timeout": 120}, "name": "x"}
    shown = public.project(record("tool_call", payload)).payload["arguments"]
    assert shown["timeout"] == 120
    assert shown["limit"] != 4111111111111111


def test_the_digest_of_hidden_text_is_not_shown(public):
    """It would let anyone test guesses."""
    private = record("message", {"role": "user", "content": "x", "pin": 1234})
    assert public.project(private).digest != private.digest


def test_metadata_keeps_order_kind_and_time_only():
    """No payload, scrubbed ids."""
    projector = Projector(PrivacyView.METADATA_ONLY, scrub_plain())
    shown = projector.project(record("message", {"role": "user"}, session_id="/home/alicewong"))
    assert shown.payload == {}
    assert shown.ts == "2026-03-01T00:00:00Z"
    assert "alicewong" not in shown.session_id
    assert ("payload", "view") in losses(projector)


def test_the_raw_view_changes_nothing():
    """The very same record, and no loss."""
    projector = Projector(PrivacyView.RAW_PRIVATE, scrub_plain())
    private = record("message", {"any": {"thing": TOKEN}}, ts="whenever")
    assert projector.project(private) is private
    assert projector.loss() == LossReport()


def test_an_earlier_loss_is_part_of_the_report(public):
    """What an import could not read is not forgotten by the view."""
    earlier = LossReport("p", (LossEntry("events.jsonl", "torn", 2),))
    shown = public.project_all(Trajectory("s", (record("message", {"role": "user"}),), earlier))
    assert LossEntry("events.jsonl", "torn", 2) in shown.loss.entries


def test_a_projection_of_a_projection_is_itself(public):
    """Markers are not scrubbed again, and nothing more is lost."""
    payload = {"role": "user", "content": f"{TOKEN} /home/alicewong/x alicewong@example.org", "zq": 1}
    once = public.project(record("message", payload))
    again = Projector(PUBLIC_VIEW, scrub_plain())
    assert again.project(once) == once
    assert again.loss().lossless


def test_loss_reports_are_data():
    """`from_dict` reads what `to_dict` wrote; the policy says whose losses they are."""
    report = LossReport("p", (LossEntry("a", "not_allowed", 2), LossEntry("b", "redacted:email")))
    assert LossReport.from_dict(report.to_dict()) == report
    assert LossReport() == LossReport("qiju.loss/none", ())


def test_a_loss_report_stays_small():
    """Invented keys cannot fill memory."""
    from qiju.trajectory.types import LossTally

    tally = LossTally("p")
    for number in range(5000):
        tally.add(f"field{number}", "not_allowed")
    report = tally.report()
    assert len(report.entries) <= LossTally.MAX_FIELDS + 1
    assert sum(entry.count for entry in report.entries) == 5000
