"""What a value looks like: random, a password, a placeholder, code, a path.

Randomness is judged by the changes between classes of characters, not by entropy alone: names written by people keep
one class for several letters, generated strings do not. Judgements are only made beside a secret-like name or in a
structure, never on free text.
"""

from __future__ import annotations

import re

from .lazy import lazily
from .names import word_set

_UUID = lazily(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")
_HEX = lazily(r"(?:0x)?[0-9a-fA-F]{16,}\Z")
_TECH = lazily(
    r"(?i)(?<![a-z0-9])(?:sha-?\d{1,3}|md5|base-?\d{2}|utf-?(?:8|16)|oauth-?\d?|[erhp]s\d{3}|ed25519|x25519|x509|ipv[46]|http[s/]?\d?"
    r"|h26[45]|mp[34]|k8s|s3|ec2|p-?256|aes-?\d{3}|rsa-?\d{4}|python3?|v\d{1,3}(?:\.\d{1,4}){0,3}|u?int\d{1,2}"
    r"|x86(?:_64)?"
    r"|arm64|amd64|\d{1,4}(?:px|ms|kb|mb|gb|[smhdkwy])(?![a-z])|(?:web)?oauth2|i18n|l10n|a11y|gpt-?\d"
    r"|iso-?\d{4,5}|log4j|tls1)(?![a-z0-9])"
)
# A hole to fill (`your-api-key`, `insert_token_here`), whole words that stand for a value, or a row of one character.
_HOLE = lazily(
    r"[<\[({].{0,80}[>\])}]\Z"
    r"|.{0,40}?(?:your|my|some|insert|replace|enter|put|add|paste|fill|the)[-_ .]?[\w -]{0,40}?"
    r"(?:api|key|token|secret|password|pass|pwd|here|value|auth|access|client|jwt|credential)s?.{0,40}\Z"
    r"|.{0,24}?(?:change[-_ ]?(?:me|this|it)|replace[-_ ]?me|fill[-_ ]?me|placeholder|redacted|dummy|sample"
    r"|removed|masked|hidden|censored).{0,40}\Z",
    re.IGNORECASE,
)
_HOLE_WORDS = tuple(
    word_set(
        "your my some insert replace enter put add paste fill the change placeholder redacted dummy sample removed"
        " masked hidden censored < [ ( {"
    )
)
_STAND_INS = word_set(
    "example test foo bar baz none null nil true false yes no undefined unset empty todo tbd n/a na string str"
    " bytes bool int number any "
    "optional required default secret password passwd pass pwd token key value user username admin root apikey"
    " api-key api_key credential "
    "credentials prompt ask env input text hidden encrypted plaintext plain self this new old type public private"
    " object function return "
    "returns file path name login email auth basic bearer oauth oauth2 oidc jwt session cookie saml ldap"
    " secretkey accesskey"
)
_REFERENCE = lazily(
    r"\A(?:\$\{|\$\(|\$[A-Za-z_][A-Za-z0-9_]*\Z|%[A-Za-z_][A-Za-z0-9_]*%|\{\{|<%|@\{|#\{|%\(|ENC\[|!vault|arn:"
    r"|op://|vault:|vault://|secret://"
    r"|secrets?\.[A-Za-z]|env[.:][A-Za-z]|file:|ssm:|awssm|gcpsm|keyring:|keychain:|@Microsoft\.KeyVault|sha(?:1"
    r"|256|384|512)[-:]|ssh-(?:rsa|ed25519)|data:|urn:|AQICAH"
    r"|process\.env|os\.environ|os\.getenv|System\.|Environment\.|import\.meta|var\.[a-z]|local\.[a-z]"
    r"|module\.[a-z]|config\.[a-z]|self\.|this\.|https?://)"
)
_CALL = lazily(r"\A[A-Za-z_$@&*!][\w.$:>-]{0,80}(?:\(|\[[A-Za-z0-9\"'])")
_DOTTED = lazily(r"\A[A-Za-z_$][A-Za-z0-9_$]*(?:(?:\.|->|::|\?\.)[A-Za-z_$][A-Za-z0-9_$]*)+[;,)]*\Z")
_PATH = lazily(
    r"\A(?:[A-Za-z]:[\\/]|\.{0,2}/[A-Za-z0-9_.@-]+(?:/|\Z)|~/|[A-Za-z0-9_.@-]+(?:/[A-Za-z0-9_.@-]+)+\.[a-z]{1,6}\Z)"
)
_FILE = lazily(
    r"\A[\w.-]{1,80}\.(?:py|js|ts|tsx|jsx|json|ya?ml|toml|md|txt|go|rs|java|rb|sh|pem|key|crt|cfg|ini|env|html?"
    r"|css|png|svg|lock|xml|csv|log)\Z"
)
_WORDS = lazily(r"\A[A-Za-z]?[a-z]{2,}(?:[-_. /][A-Za-z][a-z]*|[A-Z][a-z]+)*\d{0,3}\Z|\A[A-Z]{2,}(?:[_-][A-Z0-9]+)*\Z")
_VERSION = lazily(r"\A[v~^<>=]{0,2}\d{1,5}(?:\.\d{1,6}){1,4}(?:[-+.][A-Za-z0-9.+-]{1,24})?\Z")
_STAMP = lazily(r"\A\d{4}-\d{2}-\d{2}(?:[T ].*)?\Z")
_INTEGRITY = lazily(r"\A(?:sha\d{3}|h1)[:-]")


def placeholder(value: str) -> bool:
    """Whether the whole value is a stand-in, a reference to where the secret is, or one character repeated."""
    return _REFERENCE.match(value) is not None or stand_in(value)


LONGEST = 120  # characters judged; what is longer is data, and a hostile text must not buy time with it


def stand_in(value: str) -> bool:
    """Whether the whole value is a word such as `changeme`, a hole to fill, or one character repeated."""
    if len(value) <= LONGEST:
        low = value.lower()
        if low in _STAND_INS or (any(word in low for word in _HOLE_WORDS) and _HOLE.match(value)):
            return True
    body = value[:64]
    return len(set(body)) <= 2 or "xxxxxx" in body.lower() or "....." in body or "*****" in body


def codelike(value: str) -> bool:
    """Whether the value is an expression, a path, a version, a date or words, rather than data."""
    value = _head(value)
    return bool(
        _CALL.match(value)
        or _DOTTED.match(value)
        or _PATH.match(value)
        or _FILE.match(value)
        or _WORDS.match(value)
        or _VERSION.match(value)
        or _STAMP.match(value)
        or _INTEGRITY.match(value)
    )


def _head(value: str) -> str:
    return value if len(value) <= LONGEST else value[:LONGEST]


_WORDY = lazily("[A-Z]?[a-z]{3,}")  # written by people; generated strings hold few such runs
_RUNS = lazily(r"[A-Z]*[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_LETTER = lazily("[A-Za-z\u00c0-\uffdc]")
_LOWER, _UPPER, _DIGIT, _SYMBOL = (lazily(c) for c in ("[a-z]", "[A-Z]", "[0-9]", "[^A-Za-z0-9]"))


def _kinds(value: str) -> tuple[int, bool, bool, bool, bool]:
    """Changes of class along the value (a capital before small letters is none), and which classes occur."""
    return (
        len(_RUNS.findall(value)) - 1,
        _LOWER.search(value) is not None,
        _UPPER.search(value) is not None,
        _DIGIT.search(value) is not None,
        _SYMBOL.search(value) is not None,
    )


def random(value: str, least: int = 8) -> bool:
    """Whether a value is evidently generated or a strong password: used where the context alone is not proof."""
    value = _head(value)
    size = len(value)
    if size < least:
        return False
    if _UUID.match(value):
        return True
    if _HEX.match(value):
        body = value[2:] if value[:2] == "0x" else value
        return len(set(body)) >= 6 and not body.isdigit() and _DIGIT.search(body) is not None
    if codelike(value):
        return False
    changes, low, up, dig, sym = _kinds(value)
    plain = value
    if dig:
        # `oauth2`, `sha256`: digits that belong to a word say nothing.
        plain = _TECH.sub("", value)
        if len(plain) < 6:
            return False
        changes, low, up, dig, sym = _kinds(plain)
    size = len(plain)
    if not (low or up):
        return False
    if low and up and size >= 16 and sum(map(len, _WORDY.findall(plain))) >= size * 0.72:
        return False
    if low and up and dig:
        return changes >= 3 and changes >= size * 0.17
    if dig:
        if sym and size < 24:
            return changes >= 4 and changes >= size * 0.35 and not _slug(plain)
        least_share = 0.15 if size >= 24 and not sym else 0.25
        return size >= 12 and changes >= 4 and changes >= size * least_share and not _slug(plain)
    if low and up and sym and size >= 16:
        return changes >= size * 0.3 and not _slug(plain)
    return low and up and size >= 20 and changes >= size * 0.28


def _slug(value: str) -> bool:
    """`2026-report-v2-final`: words and numbers joined by punctuation."""
    parts = [p for p in re.split(r"[^A-Za-z0-9]+", value) if p]
    return len(parts) > 1 and all(p.isdigit() or p.isalpha() or len(p) <= 3 for p in parts)


def token(value: str) -> bool:
    """Whether a value assigned to a token-like name is data: random, or long with letters and digits."""
    value = _head(value)
    if random(value, 8):
        return True
    size = len(value)
    if size < 12 or codelike(value):
        return False
    has_digit = _DIGIT.search(value) is not None
    has_letter = _LETTER.search(value) is not None
    if has_digit and has_letter and size >= 16:
        return len(set(value)) >= 8 and not _slug(value)
    # Letters only: long, of both cases or not pronounceable.
    return size >= 24 and len(set(value)) >= 10 and value.isalpha() and not value.islower()


def password(value: str, explicit: bool) -> bool:
    """Whether a value assigned to a password-like name is one; `explicit` when quoted or set as an environment"
    " value."""
    value = _head(value)
    size = len(value)
    if size < 4:
        return False
    if random(value, 6):
        return True
    if _CALL.match(value) or _DOTTED.match(value) or _PATH.match(value) or _FILE.match(value):
        return False
    has_digit = _DIGIT.search(value) is not None
    has_letter = _LETTER.search(value) is not None
    has_symbol = _SYMBOL.search(value) is not None
    if has_digit and has_letter:
        return size >= 6 and not _STAMP.match(value) and (explicit or not _TECH.fullmatch(value))
    if value.isdigit():
        return size >= 6
    if has_symbol and has_letter:
        return size >= 8 and not _WORDS.match(value)
    return explicit and size >= 7 and value.isalpha()
