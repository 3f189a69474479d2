"""A trial function in a module of its own, so that worker processes can import it."""

from pathlib import Path


def half(settings: dict, folder: str) -> dict:
    """Append n to calls.txt; fail for n = 2."""
    place = Path(folder).parent / "calls.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place, "a") as file:
        file.write(f"{settings['n']}\n")
    if settings["n"] == 2:
        raise ValueError("two is too many")
    return {"status": "finished", "verdicts": []}
