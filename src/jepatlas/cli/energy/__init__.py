"""How far is it, and can one get back?"""

from jepatlas.cli.commands import run_command

COMMANDS = {
    "fit": "learn an energy from steps and their costs: of a world, of episodes, or on anybody's latents",
    "audit": "is an energy a quasimetric, calibrated, aware of one-way doors? A run's, or one in a file",
    "exact": "the exact energies of a world, as a picture, a table and a file",
}


def main(words: list[str]) -> int:
    return run_command("energy", COMMANDS, words, example="fit one-way-grid --head iqe --out runs/energy")
