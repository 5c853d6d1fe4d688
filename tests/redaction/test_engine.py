"""Text in, redacted text and spans out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from qiju.redaction import Engine, RedactionFailed, redact_text

MARKER = re.compile(r"\[REDACTED:[a-z0-9_]+:[0-9a-f]{8}\]")


def test_marker_names_the_kind_and_equal_values_get_equal_markers(engine: Engine, github: str) -> None:
    done = engine.redact_text(f"a {github} b {github}")
    first, second = (placeholder for _, _, placeholder in done.markers)
    assert first == second
    assert re.fullmatch(r"\[REDACTED:github_token:[0-9a-f]{8}\]", first)


def test_another_key_gives_another_marker(github: str) -> None:
    assert Engine(b"1" * 32).redact_text(github).text != Engine(b"2" * 32).redact_text(github).text


def test_without_a_key_the_marker_tells_the_kind_only(github: str) -> None:
    assert Engine(None).redact_text(github).text == "[REDACTED:github_token]"


def test_spans_are_those_of_the_given_and_of_the_final_text(engine: Engine, github: str, word: str) -> None:
    text = f"é {github}\nDB_PASSWORD={word} 密码：{word}。 end"
    done = engine.redact_text(text)
    assert [text[f.start : f.end] for f in done.findings] == [github, word, word]
    assert all(done.text[start:end] == placeholder for start, end, placeholder in done.markers)
    assert done.text.endswith("。 end")


WRAPPINGS = [
    "{v}",
    "x={v}",
    '"{v}"',
    "`{v}`",
    "<{v}>",
    "只用{v}这个令牌",
    "\x1b[33m{v}\x1b[0m",
    "\\u001b[1m{v}\\u001b[0m",
    "?a=b&t={v}&c=d",
    "t%3D{v}%26c",
    "(truncated){v}...",
    "{v}, and more",
    "- **{v}**",
    "|{v}|",
    "\\n{v}\\n",
    "/{v}/",
    "a\t{v}\r\n",
]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_token_is_found_in_every_wrapping(engine: Engine, github: str, wrapping: str) -> None:
    text = wrapping.format(v=github)
    assert engine.redact_text(text).text == text.replace(github, engine.mark("github_token", github))


def test_token_inside_json_inside_json(engine: Engine, github: str) -> None:
    text = json.dumps({"content": json.dumps({"line": json.dumps({"k": github})})})
    done = engine.redact_text(text).text
    assert github not in done
    assert json.loads(json.loads(json.loads(done)["content"])["line"])


NAMED = [
    "DB_PASSWORD={v}",
    "export DB_PASSWORD='{v}'",
    '{{"db_password": "{v}", "port": 1}}',
    "db_password: {v}\nport: 1",
    "dbPassword = `{v}`;",
    "password: str = '{v}'",
    'os.environ.get("DB_PASSWORD", "{v}")',
    "define('DB_PASSWORD', '{v}');",
    "<password>{v}</password>",
    '<property name="password">{v}</property>',
    '<add key="DbPassword" value="{v}" />',
    "- name: DB_PASSWORD\n  value: {v}",
    "--password {v} --port 1",
    "--db-password={v}",
    "The root password on the box is {v} (changed).",
    "used pw `{v}` for the admin",
    "Generated password: {v}",
    "管理员口令：{v}\n端口",
    "パスワードは「{v}」です",
    "пароль: {v}",
    "contraseña: {v}",
    "postgres://app:{v}@db.internal.io/x",
    "curl -u admin:{v} https://ci.internal.io",
    "docker login -u ci -p {v} registry.internal.io",
    "sshpass -p '{v}' ssh deploy@box",
    "mysql -u root -p{v} shop",
    "redis-cli -a {v} ping",
    "machine git.internal.io login ci password {v}",
    "db.internal.io:5432:main:app:{v}",
    "CREATE USER x IDENTIFIED BY '{v}';",
    "Server=db;User ID=svc;Password={v};Encrypt=True",
    "| user | password |\n|---|---|\n| ci | {v} |",
    "user,password\nci,{v}",
    "ID:sofie,PW:{v}",
]


@pytest.mark.parametrize("context", NAMED)
def test_password_is_found_by_its_context(engine: Engine, make: Callable[..., str], context: str) -> None:
    value = make("Kq7", 11)
    done = engine.redact_text(context.format(v=value))
    assert value not in done.text
    assert MARKER.search(done.text)


KEEP = [
    "Reset the password flow: email -> token -> new password form.",
    "password = getpass.getpass('Password: ')",
    "client_secret = var.client_secret",
    "SECRET=$(vault kv get -field=value secret/app)",
    "api_key: Optional[str] = Field(default=None)",
    "PASSWORD_MIN_LENGTH=12\nTOKEN_TTL=3600",
    "max_tokens=4096, prompt_tokens: 12345",
    "Authorization: Bearer <token>",
    "export ANTHROPIC_API_KEY=sk-ant-" + "your-key-here",
    "regex: (?i)password\\s*[=:]\\s*\\S+",
    "-----BEGIN RSA PRIVATE " + "KEY-----\nis the header the parser looks for.\n\nNext: ship.",
    "commit 1eeff3c9dca88588dd1f15a5426c0da5405ecfca",
    "session 7f6d514b-21c8-4372-87fb-b89e58b4deba resumed",
    "Chrome 132.0.4169.130 on Windows",
    "allow 198.51.100.186/32 and 192.168.0.1",
    "icon@2x.png and deploy@orchid-host and user@example.org",
    "1748503543012 please check this",
    "11111111-2222-3333-4444-555555555555",
    "std::fad::Node x = bed::make(); 0.0.0.0:80",
    "https://ci:$GITHUB_TOKEN@github.com/acme/x.git",
    "db_password: ENC[AES256_GCM,data:P2DIXhv5XRbO,iv:n4iBx72ej7AXb=,type:str]",
    "integrity sha512-Tx2ZTS+V8vgIl9qJ5mGY4vjOgs0YZwS/fV1Y++8lescMdu6X3I5Xqg2RwQ2rsxMRxslgJqd==",
    'id: "_env:SALESFORCE_CLIENT_ID:REDACTED"',
    "[REDACTED:manual] and [REDACTED:bearer_token:8092ee0b42ee6eff]",
    '"key": "ctrl+shift+down",',
    "GetUserAccessTokenByRefreshTokenRequestV9DTO",
]


@pytest.mark.parametrize("text", KEEP)
def test_ordinary_text_is_returned_as_it_is(engine: Engine, text: str) -> None:
    assert engine.redact_text(text).text == text


def pem(make: Callable[..., str], rows: int = 6) -> list[str]:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return [make("M", 63, alphabet, seed) for seed in range(rows)] + [make("Q", 21, alphabet) + "=="]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda lines: "\n".join(lines),
        lambda lines: "\r\n".join(lines),
        lambda lines: "\n".join("    " + line for line in lines),
        lambda lines: "\n".join("+" + line for line in lines),
        lambda lines: "\n".join(f"#6 0.24{i} {line}" for i, line in enumerate(lines)),
        lambda lines: json.dumps({"key": "\n".join(lines)}),
        lambda lines: json.dumps({"a": json.dumps({"key": "\n".join(lines)})}),
        lambda lines: " +\n".join(f'    "{line}\\n"' for line in lines),
        lambda lines: "\n".join(lines[:-1]) + "\n(output truncated)\nall tests pass",
        lambda lines: "\n".join(lines[:-3]),
        lambda lines: "".join(lines),
        lambda lines: " ".join(lines),
    ],
)
def test_private_key_rows_go_in_every_wrapping(
    engine: Engine, make: Callable[..., str], wrap: Callable[[list[str]], str]
) -> None:
    head, tail = ("-----" + mark + " RSA PRIVATE " + "KEY-----" for mark in ("BEGIN", "END"))
    rows = pem(make)
    text = wrap([head, *rows, tail])
    done = engine.redact_text(text).text
    assert not [row for row in rows if row in done]
    if "all tests pass" in text:
        assert "all tests pass" in done


def test_private_key_without_its_beginning(engine: Engine, make: Callable[..., str]) -> None:
    rows = pem(make)
    done = engine.redact_text("\n".join([*rows, "-----END EC PRIVATE " + "KEY-----", "next"])).text
    assert not [row for row in rows if row in done]
    assert done.endswith("next")


def test_public_blocks_stay(engine: Engine, make: Callable[..., str]) -> None:
    text = "\n".join(["-----BEGIN CERTIFICATE-----", *pem(make), "-----END CERTIFICATE-----"])
    assert engine.redact_text(text).text == text


def test_redacting_again_changes_nothing(engine: Engine, github: str, word: str) -> None:
    once = engine.redact_text(f"password is {word} and {github}; DB_PASSWORD={word}").text
    assert engine.redact_text(once) == (once, [], [])


def test_rest_behind_an_existing_marker_is_not_taken_for_a_value(engine: Engine) -> None:
    text = "password=[REDACTED:password:0123abcd] Port8443x next"
    assert engine.redact_text(text).text == text


def test_allowed_value_is_left_by_low_confidence_rules_only(github: str, make: Callable[..., str]) -> None:
    value = make("q7", 20)
    text = f"using the access token {value} and {github}"
    assert value not in Engine(b"k").redact_text(text).text
    done = Engine(b"k", allow=[value, github]).redact_text(text).text
    assert value in done
    assert github not in done


def test_overlapping_rules_make_one_marker(engine: Engine, github: str) -> None:
    done = engine.redact_text(f"https://x-access-token:{github}@github.com/a/b.git")
    assert len(done.findings) == 1


def test_remembered_values_are_united_with_the_rules(github: str) -> None:
    engine = Engine(b"k", remembered=lambda text: [m.span() for m in re.finditer("blue heron", text)])
    done = engine.redact_text(f"the blue heron and {github}")
    assert [f.kind for f in done.findings] == ["literal", "github_token"]


def test_a_text_that_never_becomes_clean_is_refused() -> None:
    """Fail closed: a rule that finds something new in every output must not let the text through."""
    engine = Engine(b"k", remembered=lambda text: [m.span() for m in re.finditer(r"(?<= )[a-z](?= )", text)][-1:])
    with pytest.raises(RedactionFailed):
        engine.redact_text("values: a b c d e f g h i j k l m ")


def test_what_only_appears_after_a_replacement_is_found_too() -> None:
    seen: list[str] = []

    def remembered(text: str) -> list[tuple[int, int]]:
        seen.append(text)
        at = text.find("tail") if "[REDACTED" in text else -1
        return [(0, 4)] if text.startswith("head") else ([(at, at + 4)] if at >= 0 else [])

    done = Engine(b"k", remembered=remembered).redact_text("head and tail")
    assert [(f.start, f.end) for f in done.findings] == [(0, 4), (9, 13)]
    assert "tail" not in done.text


def test_module_function_is_the_engine_with_a_fixed_key(github: str) -> None:
    assert redact_text(github) == redact_text(github)
    assert MARKER.fullmatch(redact_text(github))


def test_findings_never_hold_the_value(engine: Engine, github: str) -> None:
    assert github not in repr(engine.redact_text(github))
