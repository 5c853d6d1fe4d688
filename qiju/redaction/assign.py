"""`name = value` in all its spellings: assignments, JSON, YAML, headers, flags, prose, and prose without spaces.

Secret-like words are found first, one pass over the lower-case text; only around those is a name completed, its
separator read and its value cut out. How surely the separator assigns (an equals sign, the word `is`, a mere space)
decides together with the name how much the value must look like a secret.
"""

from __future__ import annotations

import re

from . import looks, names
from .lazy import lazily
from .matching import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .engine import Finding

_WORD = lazily(
    r"pass(?:word|wd|phrase|code|wrd|wort|key)?|p?s?wd(?![a-z])|pw(?![a-z])|psk|secret|tokens?|api[-_ ]?keys?"
    r"|key(?![a-z])|keys(?=[_\"'])"
    r"|cred(?:ential)?s?|jwt|pat(?![a-z])|bearer|auth(?!or|en)|signature|(?<![a-z])sig(?![a-z])|webhook"
    r"|cookie|session[-_]?id|sess(?![a-z])|(?<![a-z])sid(?![a-z])|dsn|totp|mnemonic|seed|salt|kennwort|contrase"
    r"|senha|wachtwoord|has[l\u0142]o|mot de passe"
    r"|(?<![a-z])mdp|(?<![a-z])clave|parola|(?<![a-z])sifre|\u015fifre|l\u00f6senord|salasana"
    r"|connection[-_ ]?string|connstr|csrf|xsrf|(?<![a-z])sas(?![a-z])|pepper|nonce"
)
# What every alternative above begins with; found by plain search, which is quicker than one large expression.
_STEMS = (
    (
        "pass psk pwd pw secret token key api cred jwt pat bearer auth sig webhook cookie sess sid dsn totp"
        " mnemonic seed salt kennwort "
        "contrase senha wachtwoord hasl has\u0142 mot de mdp clave parola sifre \u015fifre l\u00f6senord salasana"
        " connection connstr "
        "csrf xsrf sas pepper nonce wd swd pswd"
    )
    .replace("mot de", "mot\u0000de")
    .split()
)
_STEMS = [stem.replace("\u0000", " ") for stem in _STEMS]
_CJK_WORD = lazily(
    "\u5bc6\u7801|\u5bc6\u78bc|\u53e3\u4ee4|\u5bc6\u94a5|\u5bc6\u9470|\u79d8\u94a5|\u79c1\u94a5|\u4ee4\u724c"
    "|\u51ed\u8bc1|\u6191\u8b49|\u6388\u6743\u7801|\u8a8d\u8a3c\u60c5\u5831|"
    "\u30d1\u30b9\u30ef\u30fc\u30c9|\u30c8\u30fc\u30af\u30f3|\u6697\u8a3c\u756a\u53f7|\u79d8\u5bc6\u9375"
    "|\ube44\ubc00\ubc88\ud638|\ud1a0\ud070|\uc554\ud638|"
    "\u043f\u0430\u0440\u043e\u043b[\u044c\u044f\u0435\u044e]|\u0442\u043e\u043a\u0435\u043d"
    "|\u043a\u043b\u044e\u0447|\u03ba\u03c9\u03b4\u03b9\u03ba\u03cc\u03c2"
    "|\u0e23\u0e2b\u0e31\u0e2a\u0e1c\u0e48\u0e32\u0e19|\u092a\u093e\u0938\u0935\u0930\u094d\u0921|"
    "\u0643\u0644\u0645\u0629 \u0627\u0644\u0645\u0631\u0648\u0631|\u05e1\u05d9\u05e1\u05de\u05d4|contrase\u00f1a"
    "|m\u1eadt kh\u1ea9u"
)
_CJK_GAP = lazily(
    "[^\\x21-\\x7e\n]{0,12}?(?: es | est | ist | is |\u662f"
    "|\u4e3a|\u70ba|\u6539\u6210|\u8bbe\u4e3a|\u306f|\u3092|\uff1a|\uff1d|\u300c"
    "|\u300e|\u201c|\u201d|[:=\\-]|\\s|\u0434\u043b\u044f|\u2014|\u2013){0,6}"
    "[ \t]{0,3}[\"'`\u300c\u300e\u201c]{0,2}"
)
_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_TAIL = lazily(r"[A-Za-z0-9_]{0,32}(?:[.-][A-Za-z0-9_]{1,32}){0,3}")

_SEP = lazily(
    r"""
      (?P<call> (?:\\?["'`]\s?)? \)? \s? (?:,|\() \s{0,4} (?=[brfu]?["'`]) )     # ("name", "value")  setName("value")
    | (?P<xml>  ["']\s{0,8} (?: (?:/?>\s{0,4}<value>) | /?> (?=[^\s<]) | (?:value|val|content)\s?=\s?(?=["']) )
              | >\s{0,4}(?=[^\s<>=]) )
    | (?P<pair> ["'`]?\s?,?\s{0,24}["']?[vV]al(?:ue)?["']?\s?[:=]\s? )           # name: X, value: Y
    | (?P<typed> \s? : \s? [A-Za-z_][\w.\[\], |?]{0,40} \s? = \s? )              # name: str = value
    | (?P<set>  \s? [\x22'`\])*]{0,4} \s? (?:=>|:=|\+=|\?=|={1,3}|:{1,2}|\uff1a|\uff1d|->|\u2192|%3[dD]|%3[aA])
                [ \t]{0,16} (?:[|>]-?\n[ \t]{1,16})? (?:[A-Z][A-Za-z]{2,12}[ ](?=\S{12}))? )
    | (?P<prose> \s (?:[a-z'(][A-Za-z0-9'()/-]{0,20}[, ]{1,2}){0,7}?
                 (?:is|was|are|to|as|with|becomes|equals|now|ist|es|est|\u00e8|=|:)
                 (?:\s(?:now|still|currently|set\sto|just|just\sset\sto))? [:\s] \s{0,2} )
    | (?P<flag> \s{1,2}--(?:body|value|secret-string|string-value|plaintext|data)[ =]{1,2} )
    | (?P<gap>  [ \t]{1,24} (?:[(=:|-]{1,2}\s{0,2})? | \s{1,3} | \s?[/|]\s? )
    """,
    re.VERBOSE | re.ASCII,
)
_RUN = lazily(r"[!#-&(-;=?-_a-~]{1,600}", re.ASCII)  # printable, without quotes, angle brackets and backtick
_QUERY = lazily(r"&(?:amp;)?[A-Za-z_][\w.~-]{0,40}=|&&|\|\|")
_CLOSE = {"(": ")", "[": "]", "{": "}"}
_QUOTE_PAIRS = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "\u00ab": "\u00bb",
}
_EMPTY_NEXT = lazily(r"\s{0,2}[A-Za-z]")
_SURE = ("set", "xml", "pair", "typed")


def find(twin: str, low: str) -> list[Finding]:
    """Findings of a shadow text; `low` is its lower case."""
    out: list[Finding] = []
    done = -1
    refused = Refused()
    for at in _places(low):
        if at < done:
            continue
        match = _WORD.match(low, at)
        if match is None:
            continue
        start, end = _complete(twin, at, match.end())
        done = end
        strong = names.strength(twin[start:end])
        if strong <= names.WEAK:
            # `api key` and `access key` are names although written in two words.
            pair, done = _two_words(twin, start, end, done)
            strong = max(strong, pair)
            if strong == names.NONE:
                continue
        hit, value_end = _beside(twin, start, end, strong)
        if hit is not None:
            out.append(hit)
            done = max(done, hit.end)
        else:
            done = max(done, refused.go_on(end, value_end))
    if not twin.isascii():
        out.extend(_foreign(twin))
    return out


def _places(low: str) -> list[int]:
    """Where a secret-like word may begin, in order."""
    places: set[int] = set()
    for stem in _STEMS:
        at = low.find(stem)
        while at >= 0:
            places.add(at)
            at = low.find(stem, at + 1)
    return sorted(places)


_CONTEXT = lazily(
    r"(?i)phone|mobile|msisdn|(?<![a-z])tel(?![a-z])|cell|fax|ssn|card|(?<![a-z])pan(?![a-z])|passport|nino|nhs"
    r"|cpf|dni|nif|sin(?![a-z])|pesel|bsn"
    r"|aadha+r|totp|otp|mfa|2fa|mnemonic|seed|recovery|private.?key|authorization|cookie|(?<![a-z])auth(?![a-z])"
    "|\u624b\u673a|\u7535\u8bdd|\u8eab\u4efd\u8bc1"
)


def gives_context(name: str) -> bool:
    """Whether a key says something that rules look for before a value."""
    return len(name) <= 96 and _CONTEXT.search(name) is not None


def named(name: str, value: str) -> list[Finding]:
    """A whole value under a key: judged as if it were quoted beside the name."""
    from .engine import Finding

    strong = names.strength(name)
    body = value.strip()
    if strong == names.NONE or not body or " " in body or "\n" in body or len(body) > 4096:
        return []
    if not _accept(body, strong, "set", True):
        return []
    start = value.index(body)
    kind = "password" if strong == names.PASSWORD else "secret"
    return [Finding("assigned-" + kind, kind, start, start + len(body), "medium")]


def _complete(twin: str, start: int, end: int) -> tuple[int, int]:
    """The whole identifier around a secret-like word."""
    floor = max(0, start - 48)
    while start > floor and twin[start - 1] in _NAME_CHARS:
        start -= 1
    tail = _TAIL.match(twin, end)
    return start, tail.end() if tail else end


_WORD_BEFORE = lazily(r"([A-Za-z]{2,20})[ -]\Z")


def _two_words(twin: str, start: int, end: int, done: int) -> tuple[int, int]:
    """`admin key`, `access token`: a name of two words in prose."""
    if " " in twin[start:end]:
        return names.strength(twin[start:end].replace(" ", "_")), done
    before = _WORD_BEFORE.search(twin, max(0, start - 24), start)
    if before is not None and before[1].lower() in names.VENDOR_KEYS:
        return names.strength(f"{before[1]}_{twin[start:end]}"), done
    return names.NONE, done


def _beside(twin: str, start: int, end: int, strong: int) -> tuple[Finding | None, int]:
    """The finding beside a name, if any, and where the value that was read ends."""
    from .engine import Finding

    flag = twin[max(0, start - 2) : start + 1].endswith("-") or twin[start : start + 1] == "-"
    at = end
    sep = _SEP.match(twin, at)
    if sep is None:
        return None, end
    how = sep.lastgroup or "gap"
    if how == "gap" and flag:
        how = "flag"
    if how == "xml" and not (twin[end : end + 1] in "\"'" or twin[max(0, start - 1) : start] in ("<", ":")):
        return None, end
    value_start, value_end, quoted = cut(twin, sep.end())
    value = twin[value_start:value_end]
    explicit = quoted or twin[start:end].isupper() or how in ("xml", "flag")
    if strong == names.WEAK and how in ("prose", "gap", "call"):
        return None, value_end
    if (
        not explicit
        and how == "set"
        and strong == names.PASSWORD
        and value.isalpha()
        and _EMPTY_NEXT.match(twin, value_end)
    ):
        return None, value_end
    for _ in range(3):
        if _accept(value, strong, how, explicit) or (how == "prose" and _said(twin, value, value_end, strong)):
            break
        # The first linking word need not be the last: `the password was reset to X`.
        link = _LINK.match(twin, value_start) if how == "prose" and not quoted else None
        if link is None:
            return None, value_end
        value_start, value_end, quoted = cut(twin, link.end())
        value = twin[value_start:value_end]
        explicit = explicit or quoted
    else:
        return None, value_end
    kind = "password" if strong == names.PASSWORD else "secret"
    level = "medium" if how in _SURE and strong > names.WEAK else "low"
    return Finding("assigned-" + kind, kind, value_start, value_end, level), value_end


_LINK = lazily(r"(?:[A-Za-z'()-]{1,20},? ){0,5}?(?:is|was|to|as|with|now|be)(?: |: )", re.ASCII)
_SENTENCE_END = lazily(r"[\"'`]?(?:[.,;!?)](?:\s|\Z)|\s*(?:\n|\Z))")


def _said(twin: str, value: str, end: int, strong: int) -> bool:
    """A weak password told in prose: `my password is hunter2.`"""
    return (
        strong == names.PASSWORD
        and _SENTENCE_END.match(twin, end) is not None
        and not looks.placeholder(value)
        and not value.isalpha()
        and " " not in value
        and looks.password(value, False)
        and not value.isdigit()
    )


def _accept(value: str, strong: int, how: str, explicit: bool) -> bool:
    if not value or looks.placeholder(value):
        return False
    if " " in value:
        return False
    if strong == names.WEAK:
        return len(value) >= 16 and looks.random(value, 16)
    if how in _SURE or how == "flag":
        if strong == names.PASSWORD:
            return looks.password(value, explicit)
        return looks.token(value) or (len(value) >= 8 and explicit and looks.random(value, 8))
    if how == "call":
        return looks.random(value, 6 if strong == names.PASSWORD else 12)
    if how == "prose":
        return looks.random(value, 6 if strong == names.PASSWORD else 10)
    # A mere space: only what is evidently generated, or quoted like a value.
    return looks.random(value, 8 if explicit or strong == names.PASSWORD else 16)


def cut(twin: str, at: int) -> tuple[int, int, bool]:
    """The value that begins at `at`: start, end and whether it was quoted."""
    size = len(twin)
    if at < size and twin[at] in "brfuBRFU@$" and twin[at + 1 : at + 2] in ('"', "'"):
        at += 1
    if at < size and twin[at] in "*_" and twin[at : at + 2] in ("**", "__"):
        at += 2
    if at < size and twin[at] in _QUOTE_PAIRS:
        mark = twin[at]
        run = 3 if twin[at : at + 3] == mark * 3 else 1
        begin = at + run
        while begin < size and twin[begin] in " \\":
            begin += 1
        stop = twin.find(_QUOTE_PAIRS[mark], begin, begin + 4100)
        line = twin.find("\n", begin, begin + 4100)
        if stop > begin and (line < 0 or stop < line):
            end = stop
            while end > begin and twin[end - 1] in " \\":
                end -= 1
            return begin, end, True
        at = begin
    run_match = _RUN.match(twin, at)
    if run_match is None:
        return at, at, False
    end = run_match.end()
    query = _QUERY.search(twin, at, end)
    if query is not None:
        end = query.start()
    for stop_char in ",;":
        stop = twin.find(stop_char, at, end)
        if stop >= 0:
            end = stop
    end = trim(twin, at, end)
    return at, end, False


def trim(twin: str, at: int, end: int) -> int:
    """Take closing punctuation that belongs to the sentence, not to the value, off the end."""
    while end > at:
        last = twin[end - 1]
        if last in ".,;:!?*|\\":
            end -= 1
        elif last in ")]}":
            opened = {")": "(", "]": "[", "}": "{"}[last]
            if opened in twin[at:end]:
                return end
            end -= 1
        else:
            return end
    return end


def _foreign(twin: str) -> list[Finding]:
    """Names in scripts that write no spaces: the value is the ASCII run after the word."""
    from .engine import Finding

    out: list[Finding] = []
    for match in _CJK_WORD.finditer(twin):
        gap = _CJK_GAP.match(twin, match.end())
        if gap is None:
            continue
        start, end, quoted = cut(twin, gap.end())
        value = twin[start:end]
        if not value or looks.placeholder(value) or " " in value:
            continue
        sure = quoted or gap.end() > match.end()
        if looks.random(value, 6) or (sure and looks.password(value, False) and not value.isalpha()):
            out.append(Finding("assigned-password", "password", start, end, "medium"))
    return out
