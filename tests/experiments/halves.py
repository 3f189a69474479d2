"""A trial for tests: workers must be able to import it."""

from pathlib import Path


def half(settings: dict, folder: str) -> dict:
    """A trial that counts its calls, and fails where it is told to."""
    place = Path(folder).parent / "calls.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place, "a") as file:
        file.write(f"{settings['n']}\n")
    if settings["n"] == 2:
        raise ValueError("two is too many")
    return {"status": "finished", "verdicts": []}
