"""The page shows hostile data as text: no tag, no attribute, no script, no link of it ever comes to life."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from qiju.trajectory.types import LossEntry, LossReport
from qiju.transcripts.page import page
from qiju.transcripts.turns import turns

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)> javascript:alert(3) \" onclick='x' "
    "\u202eX\x1b[2J ]]> <!--"
)
OURS = """html head meta title style body header h1 h2 div p nav input output button main section article a span code
details summary dl dt dd pre i footer ul li script"""


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []
        self.text = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def html(claude, write, read, stored):
    claude.session = HOSTILE
    claude.user(HOSTILE, timestamp=HOSTILE, isSidechain=True, agentId=HOSTILE)
    claude.assistant("m1", {"type": "thinking", "thinking": HOSTILE}, {"type": "text", "text": HOSTILE + "\n" * 90})
    claude.call("m1", HOSTILE, HOSTILE, **{HOSTILE: HOSTILE, "list": [HOSTILE]})
    claude.result(HOSTILE, HOSTILE)
    claude.result("nobody", HOSTILE)
    claude.line("queue-operation", operation="enqueue", content=HOSTILE)
    claude.line(HOSTILE, data=HOSTILE)
    drafts, _ = read(write(claude.lines))
    loss = LossReport("test", (LossEntry(HOSTILE, HOSTILE, 1),))
    return "".join(page(HOSTILE, "raw_private", turns(stored(drafts)), [loss]))


def test_no_tag_or_attribute_comes_from_the_data(html):
    tags = Tags()
    tags.feed(html)
    names = {tag for tag, _ in tags.found}
    assert names <= set(OURS.split())
    assert sum(tag == "script" for tag, _ in tags.found) == 1
    for tag, attributes in tags.found:
        assert not any(name.startswith("on") or name in ("src", "style", "action") for name in attributes), tag
        assert re.fullmatch(r"#s\d+", attributes.get("href", "#s1"))
        assert "alert" not in "".join(value or "" for value in attributes.values())
    shown = "".join(tags.text)
    assert shown.count("<img src=x onerror=alert(2)>") >= 9
    assert "\u202e" not in html
    assert "\x1b" not in html


def test_the_policy_admits_exactly_the_pages_own_style_and_script(html):
    tags = Tags()
    tags.feed(html)
    (policy,) = [
        attributes["content"]
        for tag, attributes in tags.found
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")
    for name in ("style", "script"):
        (body,) = re.findall(rf"<{name}>(.*?)</{name}>", html, re.DOTALL)
        digest = b64encode(sha256(body.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_nothing_is_fetched_from_elsewhere(html):
    assert not re.search(r"url\(|@import|https?://|//cdn", re.sub(r"<article.*?</article>", "", html, flags=re.DOTALL))


def test_an_empty_session_says_so():
    assert "no entries in this view" in "".join(page("s", "metadata_only", []))


def test_fenced_code_is_set_as_code_and_loses_no_character(claude, write, read, stored):
    said = "before\n```py\nx = 1 < 2\n```\nafter\n```never closed\nrest"
    claude.user(said)
    html = "".join(page("s", "raw_private", turns(stored(read(write(claude.lines))[0]))))
    assert "<pre>```py\nx = 1 &lt; 2\n```</pre>" in html
    assert "```never closed\nrest" in html
