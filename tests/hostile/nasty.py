"""What a hostile or unlucky writer puts where text is expected: paths, SQL, options, markup, escapes, odd Unicode."""

from __future__ import annotations

from hypothesis import strategies as st

PATHS = (
    "../../../etc/passwd", "/etc/passwd", "/", ".", "..", "a/../b", "C:\\Windows\\x", "C:x", "\\\\server\\share\\x",
    "//server/share", "CON", "nul.txt", "aux.", "LPT1", "COM¹", "a:b", "trailing.", "trailing ", "~", "~root", "$HOME",
    "%2e%2e%2f", ".git", ".qiju", "month=2020-01", "__HIVE_DEFAULT_PARTITION__", "a=b", "x" * 300, "é" * 200,
)  # fmt: skip
SQL = ("'; DROP TABLE record; --", '" OR 1=1 --', "x' UNION SELECT * FROM record --", "?1", ":name", "@p", "$p", "\\")
FTS = ('"', '""', "* NEAR(", "title:core", "^a", "a AND NOT b", "-a", "a*", "(", "{a b}:c", "NEAR/2", "a + b")
GLOB = ("*", "?", "[", "[]", "[^a]", "[a-", "%", "_", "\\%", "**", "]")
OPTIONS = ("--help", "-x", "--", "-", "--home=/x", "-1", "@file", "--query")
MARKUP = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "[bold red]x[/]",
    "[/]", "[link=http://x]y[/link]", "&lt;b&gt;", "'\"><svg/onload=alert(1)>", "{{7*7}}", "${7*7}", "<!--", "]]>",
    "```\n# h\n```", "| a | b |", "# title", "- [x] done",
)  # fmt: skip
FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", '=HYPERLINK("http://x")')
TERMINAL = (
    "\x1b[31mred", "\x1b]0;title\x07", "\x1b]8;;http://x\x07y\x1b]8;;\x07", "\x9b31m", "a\rb", "a\bb", "\x00", "\x7f",
    "\u202egpj.exe", "\u2066x\u2069", "\u200b", "\ufeffx", "\u2028", "\x85", "a\nb", "a\tb", "\x0c", "\x1b[2J\x1b[H",
)  # fmt: skip
UNICODE = (
    "e\u0301", "\u212a", "ſ", "ß", "İ", "ı", "ﬃ", "Σς", "👨\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈", "\U0010ffff", "\ue000",
    "％＿＂", "٣", "²", "日本", "\u0301", "a" + "\u0301" * 50, "\u3000", "\ufdd0",
)  # fmt: skip
NUMBERS = ("0", "-1", "1e9", "nan", "inf", "99999999999999999999", "1.5", "0x10", "1_000", "", " ")
TIMES = (
    "0001-01-01", "9999-12-31", "0000-00-00", "2026-13-01", "9999-12-31T23:59:59.999999999Z", "999999d", "999999w",
    "2026-02-30", "0001-01-01T00:00:00+23:59", "2026-03-01T10:00:00+99:99", "T", "now", "-5d", "1d1d",
)  # fmt: skip
IDS = ("a:1", "s:0", "s:01", ":1", "s:", ":", "s:1:2", "s:99999999999999999999", "s:-1", "s:1.5", "s:²", "s:٣", "s\n:1")
ALL = PATHS + SQL + FTS + GLOB + OPTIONS + MARKUP + FORMULAS + TERMINAL + UNICODE + NUMBERS + TIMES + IDS

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)  # every character but lone surrogates
TEXTS = st.sampled_from(ALL) | ANY_TEXT
# What a process can be given as an argument: no NUL, and bytes that are not UTF-8 as lone surrogates.
WORDS = TEXTS.map(lambda text: text.replace("\0", "")) | st.sampled_from(["\udcff", "a\udc80b", "x" * 5_000])
HALVES = TEXTS | st.sampled_from(["\ud83d", "a\udc80", "\udfff\ud800"])  # what JSON escapes can make
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
