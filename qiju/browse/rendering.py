"""Texts of records as HTML in which nothing runs, loads or hides.

Markdown is rendered with its HTML switched off, so tags in a record are shown as the letters they are. Links lead to
the web or to a mail address and nowhere else; pictures become links, because a picture that loads tells its server who
reads what. Characters that turn the reading direction are shown as escapes, as everywhere in Qiju.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from qiju.render import inert_text

SCHEMES = ("http://", "https://", "mailto:")
LARGEST = 512 * 1024  # characters; above that a text is shown as it is


class _Inert(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return url.lower().startswith(SCHEMES)


def _link_open(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    return self.renderToken(tokens, index, options, env)


def _image(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    where = str(token.attrs.get("src", ""))
    return str(
        Markup('<a rel="noopener noreferrer nofollow" href="{}">{}</a>').format(where, token.content or "picture")
    )


def _reader() -> MarkdownIt:
    reader = _Inert("commonmark", {"html": False}).enable(["table", "strikethrough"])
    reader.add_render_rule("link_open", _link_open)
    reader.add_render_rule("image", _image)
    return reader


_READER = _reader()


def markdown(text: str) -> Markup:
    """Markdown as HTML; see the module."""
    shown = inert_text(text.replace("\r\n", "\n"), lines=True)
    if len(shown) > LARGEST:
        return Markup("<pre>{}</pre>").format(shown)
    return Markup(_READER.render(shown))  # the renderer escapes, and its HTML is off


def plain(value: object) -> Markup:
    """A value as text."""
    return escape(inert_text(str(value), lines=True))
