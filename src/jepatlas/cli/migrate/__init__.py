"""Carry what was trained on one model over to another."""

from jepatlas.cli.commands import run_command

COMMANDS = {
    "probe": "a linear probe, through the map between two models, with no training",
    "energy": "an energy on latents, through the map between two models, with no training",
    "model": "what a trained agent knows of images, to a student of another view that is trained beside it",
    "mutual": "what two agents on images learn, to each other while both are trained",
    "planner": "dynamics and energy of a world model, to the camera of another, with no training",
}


def main(words: list[str]) -> int:
    return run_command("migrate", COMMANDS, words, example="probe ada.npz ben.npz --labels labels.npy")
