"""What importing the package pulls in: commands that only read must not pay for the rules."""

from __future__ import annotations

import subprocess
import sys


def loaded(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_loads_nothing_of_it() -> None:
    extra = loaded("import qiju.redaction") - loaded("import qiju")
    assert {name for name in extra if name.startswith("qiju.")} == {"qiju.redaction"}
    assert "json" not in extra
    assert "re" not in extra


def test_redacting_a_clean_text_loads_no_heavy_module() -> None:
    extra = loaded("import qiju.redaction as r; r.redact_text('a plain note about nothing')") - loaded("pass")
    heavy = {
        "dataclasses",
        "inspect",
        "logging",
        "asyncio",
        "subprocess",
        "tempfile",
        "uuid",
        "hashlib",
        "hmac",
        "ipaddress",
        "urllib.parse",
        "importlib.metadata",
        "base64",
        "html",
        "stdnum",
        "kingfisher_sdk",
    }
    assert not extra & heavy


def test_every_exported_name_exists() -> None:
    import qiju.redaction as package

    assert all(hasattr(package, name) for name in package.__all__)
