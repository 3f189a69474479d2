"""jepatlas: trust, translate and plan with joint-embedding predictive world models.

    import jepatlas as ja

    certificate = ja.certify(h, h_next, z)     # are these latents the world's own coordinates?
    alignment = ja.align(a, b)                 # can one model be translated into another?
    result = ja.audit(distances)               # is this a quasimetric?
    planning = ja.drive("runs/rooms")          # does planning in these latents reach its goals?
    monitor = ja.Monitor(every=500)            # a certificate while you train

Names are imported when they are first used, so this module imports quickly. Everything else is in the subpackages, for
example `from jepatlas.objectives import LeJEPA`.
"""

from typing import TYPE_CHECKING

__version__ = "0.2.0"

from jepatlas.core.lazy import after_import, lazy_exports

if TYPE_CHECKING:
    from jepatlas import testing as testing
    from jepatlas.alignment import Atlas, ChartLatents, LinearProbe, save_atlas
    from jepatlas.api.encode_function import encode
    from jepatlas.api.energy_functions import EnergyAudit, audit, fit_energy
    from jepatlas.api.export_function import export
    from jepatlas.api.hub_function import push_to_hub
    from jepatlas.api.latent_functions import align, certify
    from jepatlas.api.report_function import report
    from jepatlas.api.run_functions import Planning, Run, drive, load, load_weights, train
    from jepatlas.core.errors import InputError
    from jepatlas.core.linear_map import LinearMap
    from jepatlas.core.plugins import Plugin
    from jepatlas.energy import LeastAction
    from jepatlas.monitoring import LightningMonitor, Monitor, TrainerMonitor
    from jepatlas.results import Result
    from jepatlas.workflows.align import Alignment
    from jepatlas.workflows.certify import Certificate
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "Alignment",
    "Atlas",
    "Certificate",
    "ChartLatents",
    "EnergyAudit",
    "InputError",
    "LeastAction",
    "LightningMonitor",
    "LinearMap",
    "LinearProbe",
    "Monitor",
    "Planning",
    "Plugin",
    "Result",
    "Run",
    "TrainerMonitor",
    "align",
    "audit",
    "certify",
    "drive",
    "encode",
    "export",
    "fit_energy",
    "load",
    "load_weights",
    "push_to_hub",
    "report",
    "save_atlas",
    "testing",
    "train",
]

after_import("gymnasium", "jepatlas.worlds.gym_registration:register_environments")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
