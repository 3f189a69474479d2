"""Version, git commit and seed that produced a result."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import jepatlas

__all__ = ["provenance"]


def provenance(seed: int) -> dict[str, str | int | None]:
    return {"version": jepatlas.__version__, "commit": _commit(), "seed": seed}


@cache
def _commit() -> str | None:
    """The commit of jepatlas' own sources, with "+edited" if they have changes; None for an installed package."""
    here = Path(__file__).parent
    try:
        git = ["git", "-C", str(here)]
        subprocess.run([*git, "ls-files", "--error-unmatch", __file__], capture_output=True, check=True)
        commit = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True)
        edited = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", str(here.parent)], check=False)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+edited" if edited.returncode else "")
