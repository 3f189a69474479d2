"""Contract suites: what jepatlas expects of an objective, encoder, world, planner or energy head.

    import jepatlas as ja

    ja.testing.check_objective(MyObjective(weight=0.1))

Each function raises `ContractError`, which says which rule is broken. The parts of jepatlas are tested with the same
functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.testing.contract import ContractError
    from jepatlas.testing.encoder_contract import check_encoder
    from jepatlas.testing.energy_contract import check_energy
    from jepatlas.testing.objective_contract import check_objective
    from jepatlas.testing.planner_contract import check_planner
    from jepatlas.testing.world_contract import check_world
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = ["ContractError", "check_encoder", "check_energy", "check_objective", "check_planner", "check_world"]
