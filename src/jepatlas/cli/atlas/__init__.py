"""Many models in one frame."""

from jepatlas.cli.commands import run_command

COMMANDS = {
    "build": "put two or more models into one common frame",
    "add": "let one more model join, without changing the others; give models probes and energies",
    "show": "which models, probes and energies an atlas holds, what it is worth, and how large it is",
    "translate": "latents of one model in the coordinates of another",
}


def main(words: list[str]) -> int:
    return run_command("atlas", COMMANDS, words, example="build ada.npz ben.npz cleo.npz --out atlas")
