"""Agents on images: loading, encoding, collapse checks, teaching, probe progress and active viewpoint selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jepatlas.core.lazy import lazy_exports

if TYPE_CHECKING:
    from jepatlas.workflows.vision.camera_choice import (
        CameraChoice,
        CameraImages,
        camera_losses,
        camera_probabilities,
        choices_of,
        choose_cameras,
        load_with_cameras,
        read_camera_images,
        sample_cameras,
        train_with_cameras,
    )
    from jepatlas.workflows.vision.latent_collapse import (
        MIN_DIRECTIONS,
        collapse_verdict,
        judge_latents,
        train_and_judge,
    )
    from jepatlas.workflows.vision.probe_milestones import (
        Milestone,
        agents_on_images,
        checkpoint_objectives,
        majority_share,
        milestones,
        steps_to_reach,
    )
    from jepatlas.workflows.vision.probe_progress import judge_progress
    from jepatlas.workflows.vision.teaching_runs import (
        check_no_test_leak,
        extract_agents,
        start_taught,
        teacher_arrays,
    )
    from jepatlas.workflows.vision.training_cost import Cost, cost_of, encoding_flops
    from jepatlas.workflows.vision.vision_agent import (
        VisionAgent,
        downsample,
        encode_images,
        groups_of,
        latents_of,
        load_agent,
        untrained_objective,
    )
else:
    __getattr__ = lazy_exports(__name__, __file__)

__all__ = [
    "MIN_DIRECTIONS",
    "CameraChoice",
    "CameraImages",
    "Cost",
    "Milestone",
    "VisionAgent",
    "agents_on_images",
    "camera_losses",
    "camera_probabilities",
    "check_no_test_leak",
    "checkpoint_objectives",
    "choices_of",
    "choose_cameras",
    "collapse_verdict",
    "cost_of",
    "downsample",
    "encode_images",
    "encoding_flops",
    "extract_agents",
    "groups_of",
    "judge_latents",
    "judge_progress",
    "latents_of",
    "load_agent",
    "load_with_cameras",
    "majority_share",
    "milestones",
    "read_camera_images",
    "sample_cameras",
    "start_taught",
    "steps_to_reach",
    "teacher_arrays",
    "train_and_judge",
    "train_with_cameras",
    "untrained_objective",
]
