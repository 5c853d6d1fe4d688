"""Words of a query that carry meaning, and the stems that the word index knows them by.

Stop words are the function words of English, and the handful of verbs and nouns with which change notes and session
records begin so often that they tell no record from another. They are dropped for ranking only: a literal search looks
for every term.
"""

from __future__ import annotations

import re
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import apsw

_STOP = """
a about above after again against all almost already also although always an and another any anybody anyone
anything are around as at away be because been before behind being below beside between both but by can cannot
could did do does doing done down during each either else enough even ever every everyone everything except few for
from further get gets getting give given gives go goes going gone got had has have having he hence her here hers
herself him himself his how however i if in indeed inside instead into is it its itself just kept last least less
let lets like likely long longer made make makes making many may maybe me might mine more most mostly much must my
myself near need needed needs neither never no nobody none nor not nothing now of off often on once one ones only
onto or other others otherwise ought our ours ourselves out over own per perhaps please quite rather really same
see seem seems seen set several shall she should since so some somebody someone something sometimes soon still such
than that the their theirs them themselves then there these they thing things this those though through throughout
thus to together too toward towards two under unless until up upon us use used useful user users uses using usually
very via want wanted wants was way we well were what whatever when where whether which while who whole whom whose
why will with within without would yes yet you your yours yourself
ain aren couldn didn doesn don hadn hasn haven isn ll mustn needn re shan shouldn ve wasn weren won wouldn
add added adding adds allow allowed allowing allows bug bugs change changed changes changing fix fixed fixes fixing
improve improved improvement improvements improves issue issues new previous previously release released releases
support supported supporting supports update updated updates updating version versions work worked working works
"""
STOP = frozenset(_STOP.split())
_WORD = re.compile(r"\w+")
_COMPOUND = re.compile(r"\w[-_./:=+@#]+\w|^--?\w")

Stems = Callable[[str], list[str]]


def words(text: str) -> list[str]:
    """The distinct words of a text in order, lower case; punctuation parts them, an underscore does not."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def content(text: str) -> list[str]:
    """The words without stop words and single letters; all words where nothing else would be left."""
    every = words(text)
    return [word for word in every if word not in STOP and len(word) > 1] or every


def trigrams(text: str) -> frozenset[str]:
    """The runs of three letters in a text's words without stop words, with the gaps between the words."""
    line = f" {' '.join(word for word in _WORD.findall(text.lower()) if word not in STOP)} "
    return frozenset(line[at : at + 3] for at in range(len(line) - 2))


def compounds(text: str) -> list[str]:
    """Terms of several pieces, such as `--stop-after`, `core::retry` or `utils.conf`."""
    terms = (term.strip(".,;:()[]{}`\"'!?") for term in text.split())
    return list(dict.fromkeys(term for term in terms if _COMPOUND.search(term)))


def stemmer(connection: apsw.Connection) -> Stems:
    """SQLite's own tokenizer, so that a stem here is a term of the index there."""
    import apsw

    tokenizer = connection.fts5_tokenizer("porter", ["unicode61"])

    def stems(text: str) -> list[str]:
        raw = text.encode("utf-8", "replace")
        found: Any = tokenizer(raw, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
        return list(found)

    return stems
