"""Whether a name promises a secret: `db_password` does, `password_min_length` and `cache_key` do not.

Names are split at punctuation and at changes of case; the verdict is one of the strengths below, which decides how
much a value beside it must look like a secret to be taken for one.
"""

from __future__ import annotations

from .lazy import lazily

NONE, WEAK, TOKEN, PASSWORD = 0, 1, 2, 3

_SPLIT = lazily(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def word_set(words: str) -> frozenset[str]:
    """The words of a text: lists of words are easier to read and to add to as text."""
    return frozenset(words.split())


PASSWORDS = word_set(
    "password passe passwd passphrase passcode pwd pass pw passw passwort kennwort contrasena senha mdp motdepasse psk "
    "wachtwoord haslo sifre parola losenord salasana userpass userpassword dbpass dbpassword mypassword sshpass "
    "pgpassword masterpassword rootpassword adminpassword passwrd pswd pword unlockcode"
)
SECRETS = word_set(
    "secret token apikey apitoken apisecret credential credentials cred creds jwt pat bearer authtoken accesskey "
    "accesstoken secretkey privatekey signature sig webhook cookie sid sessionid dsn authkey clientsecret "
    "refreshtoken idtoken authorization auth seckey skey licensekey signingkey encryptionkey masterkey sessiontoken "
    "bottoken usertoken apppassword sessionkey appsecret apppass xsrf csrf sas totp otpsecret mnemonic seed"
    " jwtsecret "
    "accountkey sharedkey connectionstring connstr nonce salt pepper passkey"
)
SECRETS_MANY = word_set("secrets tokens passwords keys apikeys")
# `x key` is a secret unless x says what kind of plain key it is.
PLAIN_KEYS = word_set(
    "public pub primary foreign cache partition sort index row column map dict hash route object idempotency unique "
    "join composite hot arrow enter shift any each first last next prev this no sort group lookup bucket s3 json"
    " yaml "
    "item data config field property attribute i18n translation locale message shortcut keyboard meta ctrl alt cmd "
    "function tab escape esc left right up down home end page delete insert space space natural surrogate range "
    "business candidate super registry reg host known answer legend major minor reference ref query search filter "
    "storage_cache metric label trace span event topic routing lock mutex redis_cache redis memo react list record "
    "entity node parent child dedup deduplication duplicate main other same new old missing unknown invalid wrong "
    "valid extra required optional default"
)
# A last word that says the value is about the secret, not the secret.
ABOUT = word_set(
    "id ids name names length len ttl type types count limit size url uri urls path paths file filename dir prefix "
    "suffix format field fields column policy expiry expires expiration exp expire at age version env ref arn hint "
    "label labels placeholder min max bucket digest checksum index endpoint host algorithm alg provider manager "
    "rotation header headers regex pattern required enabled disabled strength reset changed updated created valid "
    "invalid error errors status state scope scopes kind class handler service store source mode method lifetime "
    "timeout delay ms seconds days hours minutes usage budget window rate cost price used remaining total per number "
    "num template validator validation generator parser issuer audience location description title text message "
    "input output prompt button form page link flow step check test tests list map set table view model schema "
    "param params parameter option options flag var variable variables example examples docs doc help info hash "
    "encoding encoder decoder loader reader writer factory builder util utils helper helpers config vault lookup "
    "managed needed rules rule change request response requests updater selector family bytes bits position offset "
    "exists matches match confirm is was not"
)
# A word before that turns the whole into a measure, a flag or a page position.
MEASURES = word_set(
    "max min num n total prompt completion input output use has is no enable disable show allow require need check "
    "validate verify get find page pagination continuation cancellation cancel sync resume count reset forgot "
    "change hash compare generate create delete update parse decode encode without missing invalid expired optional "
    "next unicode lexer syntax punctuation eos bos pad sep cls mask unk unknown stop start end special reserved "
    "reasoning thinking cached cache audio image text context budget tokenizer"
)
VENDOR_KEYS = word_set(
    "api access secret private auth master encryption signing sign admin service account shared license licence"
    " deploy "
    "subscription client session jwt hmac webhook server write read role app application consumer crypto cipher"
    " decrypt "
    "encrypt aes rsa ssh ssl tls pem root user personal security activation ingest integration project live prod sdk "
    "rest agent ingestion preshared symmetric wallet deployer ed25519 gpg pgp age host_private"
)


# Names written without any separator: `sharedaccesskey`, `dbpassword`.
_PASSWORD_ENDS = ("password", "passwd", "passphrase")
_SECRET_ENDS = (
    "secret",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "authkey",
    "token",
    "accountkey",
    "masterkey",
)


def words(name: str) -> list[str]:
    return [w.lower() for w in _SPLIT.findall(name)]


KEPT = 4096  # names judged before; names are no secrets, and texts repeat them
_judged: dict[str, int] = {}


def strength(name: str) -> int:
    """How strongly `name` promises a secret: NONE, WEAK (a bare `key`), TOKEN or PASSWORD."""
    known = _judged.get(name)
    if known is None:
        if len(_judged) >= KEPT:
            _judged.clear()
        known = _judged[name] = _judge(name)
    return known


def _judge(name: str) -> int:
    parts = words(name[-96:])
    while parts and parts[-1].isdigit():
        parts.pop()
    if not parts:
        return NONE
    for extra in (
        "value",
        "plain",
        "plaintext",
        "raw",
        "text",
        "prod",
        "production",
        "dev",
        "staging",
        "test",
        "string",
        "b64",
        "base64",
        "hex",
        "data",
        "current",
        "old",
        "new",
        "live",
        "default",
        "primary",
        "secondary",
    ):
        if (
            len(parts) > 1
            and parts[-1] == extra
            and (parts[-2] in PASSWORDS or parts[-2] in SECRETS or parts[-2] == "key")
        ):
            parts.pop()
            break
    last = parts[-1]
    before = parts[-2] if len(parts) > 1 else ""
    if before.isdigit() and len(parts) > 2:
        before = parts[-3] + before  # `s3 key` is one word and a number
    joined = before + last
    if last in PASSWORDS or joined in PASSWORDS:
        if before in MEASURES or before in ("by", "bypass"):
            return NONE
        return PASSWORD
    if last in ABOUT and not (last == "hash" and before in PASSWORDS):
        return NONE
    if last == "key":
        if before in VENDOR_KEYS:
            return TOKEN
        if not before:
            return WEAK
        if before in PLAIN_KEYS or before in MEASURES:
            return NONE
        return TOKEN
    if last == "string" and before in ("connection", "conn"):
        return TOKEN
    if last in SECRETS or joined in SECRETS:
        if last in ("token", "tokens", "nonce") and any(p in MEASURES for p in parts[:-1]):
            return NONE
        if last == "signature":
            # Signatures of code, of functions and of messages are public; those of requests are not.
            return TOKEN if before in ("access", "amz", "goog", "hmac", "webhook", "request", "sas") else NONE
        if last in ("seed", "salt", "nonce", "auth", "pepper", "cookie", "sid", "sig"):
            return WEAK if not before else TOKEN
        if before in MEASURES:
            return NONE
        return TOKEN
    if last.endswith(_PASSWORD_ENDS):
        return PASSWORD
    if last.endswith(_SECRET_ENDS):
        return NONE if before in MEASURES else TOKEN
    if last in SECRETS_MANY:
        return NONE if any(p in MEASURES for p in parts[:-1]) else WEAK
    return NONE
