"""Personal data: check digits, address ranges, and what stands around a number.

The check-digit algorithms are short and written here: the known library for them takes longer to import than a whole
command may run (the tests compare against it). Each validator takes the candidate, the searched text and the
candidate's span, and answers whether it is one.
"""

from __future__ import annotations

import re

from .lazy import lazily
from .names import word_set


def near(pattern: str, twin: str, start: int, reach: int = 48) -> bool:
    """Whether `pattern` occurs shortly before `start`."""
    return re.search(pattern, twin[max(0, start - reach) : start], re.IGNORECASE) is not None


def _digits(value: str) -> str:
    return "".join(c for c in value if c in "0123456789")


def luhn(digits: str) -> bool:
    """Luhn's check over a string of digits."""
    total = 0
    for position, char in enumerate(reversed(digits)):
        number = ord(char) - 48
        if position % 2:
            number = number * 2 - 9 if number > 4 else number * 2
        total += number
    return total % 10 == 0


def mod97(text: str) -> bool:
    """ISO 7064 mod 97-10 over letters and digits, as IBANs use it."""
    moved = text[4:] + text[:4]
    return int("".join(str(int(c, 36)) for c in moved)) % 97 == 1


_VERHOEFF_ROWS = (
    "0123456789 1234067895 2340178956 3401289567 4012395678 5987604321 6598710432 7659821043 8765932104 9876543210"
)
_VERHOEFF_TURNS = "0123456789 1576283094 5803796142 8916043527 9453126870 4286573901 2793806415 7046913258"
_VERHOEFF_D = tuple(tuple(int(c) for c in row) for row in _VERHOEFF_ROWS.split())
_VERHOEFF_P = tuple(tuple(int(c) for c in row) for row in _VERHOEFF_TURNS.split())


def verhoeff(digits: str) -> bool:
    """Verhoeff's check over a string of digits."""
    check = 0
    for position, char in enumerate(reversed(digits)):
        check = _VERHOEFF_D[check][_VERHOEFF_P[position % 8][int(char)]]
    return check == 0


def card(value: str, twin: str, start: int, end: int) -> bool:
    """A payment card number: known issuer range and length, Luhn."""
    digits = _digits(value)
    size = len(digits)
    two, three, four = int(digits[:2]), int(digits[:3]), int(digits[:4])
    if digits[0] == "4":
        known = size in (16, 19)
    elif 51 <= two <= 55 or 2221 <= four <= 2720:
        known = size == 16
    elif two in (34, 37):
        known = size == 15
    elif four == 6011 or two == 65 or 644 <= three <= 649 or 3528 <= four <= 3589:
        known = size in (16, 19)
    elif two in (36, 38) or 300 <= three <= 305:
        known = size == 14 and near(r"card|diners|pan\b", twin, start)
    elif two == 62:
        known = 16 <= size <= 19
    elif two in (50, 56, 57, 58, 67, 63):
        known = size in (16, 18, 19) and near(r"card|maestro|pan\b", twin, start)
    else:
        known = False
    return known and luhn(digits) and len(set(digits)) > 1


_IBAN_LENGTH = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27, "BR": 29,
    "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28, "EE": 20, "EG": 29,
    "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28,
    "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20,
    "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19,
    "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28, "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29,
    "PT": 25, "QA": 29, "RO": 24, "RS": 22, "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24,
    "SM": 27, "SO": 23, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
    "YE": 30,
}  # fmt: skip


def iban(value: str, twin: str, start: int, end: int) -> bool:
    """Country, length and check digits of an IBAN."""
    plain = value.replace(" ", "").replace("-", "").upper()
    return _IBAN_LENGTH.get(plain[:2]) == len(plain) and mod97(plain)


def cn_id(value: str, twin: str, start: int, end: int) -> bool:
    """A Chinese resident number: plausible region and birth date, ISO 7064 mod 11-2."""
    if not ("11" <= value[:2] <= "91" and "1900" <= value[6:10] <= "2035"):
        return False
    if not ("01" <= value[10:12] <= "12" and "01" <= value[12:14] <= "31"):
        return False
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    total = sum(int(c) * w for c, w in zip(value[:17], weights, strict=True))
    return "10X98765432"[total % 11] == value[17].upper()


_NOT_TLD = word_set(
    "png jpg jpeg gif svg webp ico js ts tsx jsx mjs cjs css scss py rb go rs java json yml yaml toml md txt html"
    " htm "
    "lock log sh service socket timer target mount slice local localhost test invalid example internal lan"
    " localdomain "
    "corp home tgz zip gz tar whl dist so dll exe conf cfg ini xml csv sql db"
)
_NOT_LOCAL = word_set("git hg svn ssh noreply no-reply donotreply do-not-reply x-access-token oauth2 npm")


def email(value: str, twin: str, start: int, end: int) -> bool:
    """An address a person may have: not an example domain, a file, a unit or a repository's SSH user."""
    local, _, domain = value.rpartition("@")
    labels = domain.lower().split(".")
    tld = labels[-1]
    if tld in _NOT_TLD or local.lower() in _NOT_LOCAL or "example" in labels[:-1] or labels[0] in ("test", "localhost"):
        return False
    if local.startswith(".") or local.endswith(".") or ".." in local or len(local) > 64:
        return False
    if start and twin[start - 1] in "$/:_":  # a variable or a path inside a URL, never the start of an address
        return twin[start - 1] == ":" and twin[max(0, start - 7) : start].lower() == "mailto:"
    if any(not label or label[0] == "-" or label[-1] == "-" for label in labels):
        return False
    return twin[end : end + 2] not in (":/", ":~") and not (
        twin[end : end + 1] == ":" and twin[end + 1 : end + 2].isalpha()
    )


_IP_CONTEXT = (
    r"\b(?:ip|addr|address|host|server|from|to|client|peer|remote|src|dst|source|gateway|dns|nameserver|listen"
    r"|connect(?:ed|ion|ing)?|ssh"
    r"|ping|curl|bind|inet|allow|deny|block(?:ed|ing)?|ban(?:ned)?|via|forwarded-for|real-ip|endpoint|a record|at"
    r"|http)\b[^\n]{0,16}$|[@/]$"
)
_VERSION_CONTEXT = (
    r"(?:\bv|version\w*|ver\.?|release|build|driver|firmware|chrome|chromium|firefox|edge?|edg|safari|opera|opr"
    r"|assembly\w*|upgrade[d]?"
    r"|downgrade[d]?|bump(?:ed)?|section|chapter|figure|table|oid|==|>=|<=|~=|~>|!=|\^|-|_)[\s:=\"'(/]{0,3}$"
    r"|[A-Za-z]/$|->\s?$"
    r"|(?:updat|upgrad|bump|patch|downgrad|rollback|roll|pin|releas)\w{0,4}\b[^\n]{0,30}?\b(?:to|from|at|of)\s$"
    r"|\brfc ?\d{1,5},? (?:section )?$|\bv8 (?:is )?(?:at|to)\s$"
)
_WELL_KNOWN = word_set(
    "8.8.8.8 8.8.4.4 1.1.1.1 1.0.0.1 9.9.9.9 208.67.222.222 208.67.220.220 255.255.255.255 1.2.3.4 4.3.2.1"
)


def ipv4(value: str, twin: str, start: int, end: int) -> bool:
    """A public IPv4 address, and not a version number."""
    parts = [int(p) for p in value.split(".")]
    if any(p > 255 for p in parts) or any(len(p) > 1 and p[0] == "0" for p in value.split(".")):
        return False
    a, b, c, _ = parts
    if (
        a in (0, 10, 127)
        or a >= 224
        or (a == 172 and 16 <= b <= 31)
        or (a == 192 and b == 168)
        or (a == 169 and b == 254)
    ):
        return False
    if (
        (a == 100 and 64 <= b <= 127)
        or (a == 198 and b in (18, 19))
        or (a, b, c) in ((192, 0, 2), (192, 0, 0), (198, 51, 100), (203, 0, 113))
    ):
        return False
    if value in _WELL_KNOWN or len(set(parts)) == 1 or near(_VERSION_CONTEXT, twin, start, 44):
        return False
    if parts[3] == 0 and re.match(r"/\d", twin[end : end + 2]):
        return False  # a network, not a host
    if twin[end : end + 1] in ("-", "_", "+") or twin[end : end + 1].isalpha():
        return False
    if max(parts) <= 31 or (parts[1] == 0 and parts[2] == 0 and a < 100):
        # Four small numbers are more often a version or a section.
        return near(_IP_CONTEXT, twin, start, 40) or re.match(r":\d{2,5}\b", twin[end : end + 7]) is not None
    return True


def ipv6(value: str, twin: str, start: int, end: int) -> bool:
    """A global unicast IPv6 address outside the documentation range."""
    from ipaddress import AddressValueError, IPv6Address

    try:
        address = IPv6Address(value)
    except AddressValueError:
        return False
    return (
        address.is_global
        and value.count(":") >= 3
        and not value.lower().startswith(("2001:4860:4860", "2606:4700:4700"))
    )


_PHONE = (
    r"phone|tel\b|tel[.:]|telefon|mobil|cell|fax|call|contact|sms|whats ?app|reach me|text me|number"
    "|\u7535\u8bdd|\u624b\u673a|\u96fb\u8a71|\u8054\u7cfb|\u0442\u0435\u043b"
)


def phone_us(value: str, twin: str, start: int, end: int) -> bool:
    digits = _digits(value)[-10:]
    if digits[0] in "01" or digits[3] in "01":
        return False
    return value.startswith("(") or near(_PHONE, twin, start, 40)


def phone_plain(value: str, twin: str, start: int, end: int) -> bool:
    return len(set(value)) > 2 and not value.startswith("000")


_COUNTRY = lazily(
    r"1|7|20|27|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|2[1-689]\d|3[578]\d|42[0123]|5[09]\d|6[789]\d"
    r"|8[05789]\d|9[679]\d"
)


def phone_intl(value: str, twin: str, start: int, end: int) -> bool:
    """International form: a country's prefix, 8 to 15 digits, and not an added line of a diff."""
    digits = _digits(value)
    if not 8 <= len(digits) <= 15 or not _COUNTRY.match(digits) or len(set(digits)) < 3:
        return False
    first_of_line = start == 0 or twin[start - 1] == "\n"
    if value[1:].isdigit():
        return len(digits) >= 10 and (not first_of_line or near(_PHONE, twin, start, 40))
    return (
        not first_of_line
        or re.search(_PHONE, twin[end : end + 40], re.IGNORECASE) is not None
        or value.count("-") + value.count(" ") <= 5
    )


def phone_cn(value: str, twin: str, start: int, end: int) -> bool:
    return near(
        "\u624b\u673a|\u7535\u8bdd|\u8054\u7cfb|\u53f7\u7801|\u77ed\u4fe1|phone|mobile|tel|sms|call|cell|\\+86",
        twin,
        start,
        24,
    )


def ssn(value: str, twin: str, start: int, end: int) -> bool:
    """A US social security number in its written form: no impossible group."""
    area, group, serial = value[:3], value[4:6], value[-4:]
    return (
        area not in ("000", "666")
        and (area[0] != "9" or "50" <= group <= "99")  # from 900 on: tax numbers of people without a social one
        and group != "00"
        and serial != "0000"
        and value not in ("123-45-6789", "078-05-1120", "219-09-9999")
    )


def aadhaar(value: str, twin: str, start: int, end: int) -> bool:
    return verhoeff(_digits(value))


def cpf(value: str, twin: str, start: int, end: int) -> bool:
    """Brazilian personal number, both check digits."""
    digits = [int(c) for c in _digits(value)]
    if len(digits) != 11 or len(set(digits)) == 1:
        return False
    for size in (9, 10):
        rest = sum(n * (size + 1 - i) for i, n in enumerate(digits[:size])) * 10 % 11 % 10
        if rest != digits[size]:
            return False
    return True


def dni(value: str, twin: str, start: int, end: int) -> bool:
    """Spanish DNI or NIE with its check letter."""
    plain = value.upper().replace("-", "")
    number = plain[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]


def nir(value: str, twin: str, start: int, end: int) -> bool:
    """French social security number with its key."""
    plain = value.replace(" ", "").upper().replace("2A", "19").replace("2B", "18")
    return int(plain[-2:]) == 97 - int(plain[:-2]) % 97


def nhs(value: str, twin: str, start: int, end: int) -> bool:
    digits = [int(c) for c in _digits(value)]
    check = 11 - sum(n * (10 - i) for i, n in enumerate(digits[:9])) % 11
    return check % 11 == digits[9]


def sin(value: str, twin: str, start: int, end: int) -> bool:
    return luhn(_digits(value))


def pesel(value: str, twin: str, start: int, end: int) -> bool:
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)
    return (10 - sum(int(c) * w for c, w in zip(value[:10], weights, strict=True)) % 10) % 10 == int(value[10])


def bsn(value: str, twin: str, start: int, end: int) -> bool:
    return sum(int(c) * w for c, w in zip(value, (9, 8, 7, 6, 5, 4, 3, 2, -1), strict=True)) % 11 == 0


_CF_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            1,
            0,
            5,
            7,
            9,
            13,
            15,
            17,
            19,
            21,
            2,
            4,
            18,
            20,
            11,
            3,
            6,
            8,
            12,
            14,
            16,
            10,
            22,
            25,
            24,
            23,
        ),
        strict=True,
    )
)


def codice_fiscale(value: str, twin: str, start: int, end: int) -> bool:
    """Italian tax code with its check letter."""
    plain = value.upper()
    total = 0
    for position, char in enumerate(plain[:15]):
        total += _CF_ODD[char] if position % 2 == 0 else (int(char) if char.isdigit() else ord(char) - 65)
    return chr(65 + total % 26) == plain[15]
