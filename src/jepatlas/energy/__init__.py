"""Energies: the least cost of going from one state to another, exact, learned or given by a local effort.

`exact` computes energies where the truth is known, `heads` and `learn` learn them from observed steps, `least_action`
computes them from observed steps, `action` finds least-action paths of a local effort, and `audit` checks any energy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.energy.audit import closure, symmetric_ceiling
    from jepatlas.energy.energy_configs import LeastActionConfig
    from jepatlas.energy.exact.shortest_paths import graph_energies
    from jepatlas.energy.heads import (
        HEADS,
        IQE,
        L2,
        MRN,
        PQE,
        Cosine,
        CosineConfig,
        DeepNorm,
        DeepNormConfig,
        EnergyHead,
        HeadConfig,
        IQEConfig,
        L2Config,
        MRNConfig,
        PQEConfig,
        ReluSum,
        ReluSumConfig,
        SquaredL2,
        SquaredL2Config,
    )
    from jepatlas.energy.learn import (
        IEJEPA,
        QRL,
        EmbeddedEnergy,
        Expectile,
        ExpectileConfig,
        IEJEPAConfig,
        PortedEnergy,
        PredictionError,
        QRLConfig,
        calibrate,
        discounted,
        later_pairs,
        reachability_errors,
        unreachable_share,
        unreachable_threshold,
        with_unreachable,
    )
    from jepatlas.energy.least_action import LeastAction, fit_least_action
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "HEADS",
    "IEJEPA",
    "IQE",
    "L2",
    "MRN",
    "PQE",
    "QRL",
    "Cosine",
    "CosineConfig",
    "DeepNorm",
    "DeepNormConfig",
    "EmbeddedEnergy",
    "EnergyHead",
    "Expectile",
    "ExpectileConfig",
    "HeadConfig",
    "IEJEPAConfig",
    "IQEConfig",
    "L2Config",
    "LeastAction",
    "LeastActionConfig",
    "MRNConfig",
    "PQEConfig",
    "PortedEnergy",
    "PredictionError",
    "QRLConfig",
    "ReluSum",
    "ReluSumConfig",
    "SquaredL2",
    "SquaredL2Config",
    "calibrate",
    "closure",
    "discounted",
    "fit_least_action",
    "graph_energies",
    "later_pairs",
    "reachability_errors",
    "symmetric_ceiling",
    "unreachable_share",
    "unreachable_threshold",
    "with_unreachable",
]
