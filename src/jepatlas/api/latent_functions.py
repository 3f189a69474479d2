"""`certify` and `align` for latents in memory or in files."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, get_args

import numpy as np

from jepatlas.alignment import METRICS, Latents, PairedLatents
from jepatlas.alignment.nulls import ENOUGH
from jepatlas.api.inputs import Matrix, as_array, as_column, as_folder, as_matrix, as_path, combine_groups
from jepatlas.core.errors import InputError, check_argument, check_count, check_seed, did_you_mean
from jepatlas.core.linear_map import CONDITION_LIMIT
from jepatlas.identifiability.validation import MIN_GROUPS
from jepatlas.recipes import PairsRecipe, WorldModelRecipe, any_recipe
from jepatlas.workflows.align import MAIN, Alignment, MapKind, make_study, match, read_latents
from jepatlas.workflows.align import align as align_models
from jepatlas.workflows.align.latent_files import model_names
from jepatlas.workflows.certify import SAMPLES, Certificate, certify_arrays, certify_file
from jepatlas.workflows.pairs_training import certify_pairs
from jepatlas.workflows.plan import certify_world_model
from jepatlas.workflows.runs import certify_run

__all__ = ["align", "certify"]


def certify(
    h: Any,
    h_next: Any = None,
    z: Any = None,
    *,
    groups: Any = None,
    x: Any = None,
    x_next: Any = None,
    u: Any = None,
    z_next: Any = None,
    rho: float | None = None,
    samples: int | None = None,
    quick: bool = False,
    seed: int = 0,
    title: str = "Certificate",
    out: Path | str | None = None,
) -> Certificate:
    """Test whether latents are the world's own coordinates up to a rotation, as `jepatlas certify` does.

    `h` and `h_next` are the latents of paired views (or of consecutive time steps), row by row; `z` are the true states
    of `h`, if they are known; `x` and `x_next` the observations. With the actions `u` of each step, the dynamics
    h' = Ah + Bu are certified too, against those of the states if `z_next` is given. Each may be a numpy array, a torch
    tensor, a pandas DataFrame, a path, or a list of these, one for each episode. Rows of one group (an episode, an
    object) are split and resampled together. `rho` is the correlation of the pairs; by default it is estimated.

    `h` alone may be the path of a file with all arrays, or of a run folder, which is certified on `samples` fresh pairs
    of its world (40,000), or on the held-out episodes of a world model. `quick` takes about a second for 20,000 × 4
    latents, and a few for 10,000 × 128: it resamples less and leaves out the spectrum, as the summary says. The record
    is saved in the folder `out`; that of a run by default in its own folder.

    >>> rng = np.random.default_rng(0)
    >>> z, noise = rng.standard_normal((2, 400, 2))
    >>> z_next = 0.9 * z + np.sqrt(1 - 0.9**2) * noise
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> certificate = certify(z @ turn.T, z_next @ turn.T, z, rho=0.9)
    >>> certificate.passed, certificate.diagnosis.kind
    (True, 'rotation')
    """
    check_argument("rho", rho, rho is None or (isinstance(rho, Real) and 0 < rho < 1), "between 0 and 1")
    check_argument("quick", quick, isinstance(quick, bool | np.bool_), "True or False")
    check_seed(seed)
    path = as_path("h", h)
    if path is not None and h_next is None:
        _refuse_arrays(path, z=z, groups=groups, x=x, x_next=x_next, u=u, z_next=z_next)
        if path.is_dir():
            if rho is not None:
                raise InputError(f"rho is {rho}, but for a run the correlation follows from its world. Leave rho out.")
            return _certify_run(path, SAMPLES if samples is None else samples, seed, quick, out)
        _check_no_samples(samples)
        return _saved(Certificate(certify_file(path, rho=rho, seed=seed, quick=quick)), out)
    _check_no_samples(samples)
    if h is None:
        raise InputError("'h' is missing: give the latents, one row per sample.")
    if h_next is None:
        raise InputError("'h_next' is missing: give the latents of the other view of each row, or of its next step.")
    given = {"h": h, "h_next": h_next, "z": z, "x": x, "x_next": x_next, "u": u, "z_next": z_next}
    matrices = {name: None if value is None else as_matrix(name, value) for name, value in given.items()}
    arrays = {name: matrix.rows for name, matrix in matrices.items() if matrix is not None}
    labels = combine_groups(groups, **matrices)
    for name, matrix in matrices.items():
        _check_episodes(name, matrix)
    if labels is not None:
        arrays["groups"] = labels
    return _saved(Certificate(certify_arrays(title, arrays, rho=rho, seed=seed, quick=quick)), out)


def _check_episodes(name: str, matrix: Matrix | None) -> None:
    if matrix is not None and matrix.lengths is not None and len(matrix.lengths) < MIN_GROUPS:
        count = len(matrix.lengths)
        raise InputError(
            f"'{name}' has {count} episode{'s' if count > 1 else ''}, but at least {MIN_GROUPS} are needed: 1 to fit, "
            "2 to score. Give more episodes, or one array of all rows."
        )


def _refuse_arrays(path: Path, **given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(f"'{name}' was given, but {path} is certified with its own arrays. Leave '{name}' out.")


def _check_no_samples(samples: int | None) -> None:
    if samples is not None:
        raise InputError(f"samples is {samples}, but it is for runs. All rows of latents are used: leave samples out.")


def _saved(certificate: Certificate, out: Path | str | None) -> Certificate:
    if out is not None:
        certificate.save(as_folder("out", out))
    return certificate


def _certify_run(folder: Path, samples: int, seed: int, quick: bool, out: Path | str | None) -> Certificate:
    """Certify a run, and save the record there or in `out`."""
    kind = any_recipe(folder).kind
    place = None if out is None else as_folder("out", out)
    if kind == PairsRecipe.kind:
        return Certificate(certify_pairs(folder, samples=samples, seed=seed, out=place, quick=quick))
    certify_kind = certify_world_model if kind == WorldModelRecipe.kind else certify_run
    return Certificate(certify_kind(folder, samples=samples, seed=seed, out=place, audited=True, quick=quick))


def align(
    a: Any,
    b: Any,
    *,
    ids: tuple[Any, Any] | None = None,
    groups: Any = None,
    labels: Any = None,
    raw: tuple[Any, Any] | None = None,
    names: tuple[str, str] | None = None,
    kind: MapKind = "ridge",
    within: Any = None,
    blocks: int | None = None,
    independent: bool = False,
    share: float | None = None,
    permutations: int = 99,
    rows: int = 500,
    limit: float = CONDITION_LIMIT,
    intersect: bool = False,
    full: bool = False,
    seed: int = 0,
) -> Alignment:
    """Fit a linear map from latents `a` to latents `b` of the same states and test it, as `jepatlas align` does.

    Each of `a` and `b` is a numpy array, a torch tensor, a pandas DataFrame, a path, or a list of these, one for each
    episode. `ids` are the states of the rows of a and of b; without them row i belongs to row i. `groups` and `labels`
    are those of a's rows. `raw` are the inputs of both models, for the controls. With `blocks`, rows are a time series.
    Without groups or blocks, near copies and time series are found and kept together, unless rows are `independent`.
    What `within` explains, a column that both sides share (for each of a's rows, or the name of one in the files), is
    removed from both first.
    `full` computes all metrics. The map is `alignment.map`; `alignment.migrate(probe)` moves a probe of a to b.

    >>> rng = np.random.default_rng(0)
    >>> a = rng.standard_normal((200, 3))
    >>> alignment = align(a, a @ rng.standard_normal((3, 3)), permutations=19)
    >>> alignment.passed, round(alignment["r2"].value, 3)
    (True, 1.0)
    """
    _check_options(kind, permutations, rows, share, blocks)
    check_seed(seed)
    if names is not None and (isinstance(names, str) or len(names) != 2):
        raise InputError(f"'names' must be a pair of texts, for a and for b, but {names!r} was given.")
    name_a, name_b = names or _names(a, b)
    rows_a, rows_b = _episodes("a", a), _episodes("b", b)
    column = within if isinstance(within, str) and not Path(within).exists() else None
    first = _latents("a", a, rows_a, name_a, column)
    second = _latents("b", b, rows_b, name_b, column)
    if column is not None and first.within is None and second.within is None:
        raise InputError(f"'within' is '{column}', but neither 'a' nor 'b' is a file with such a column.")
    ids_a, ids_b = _both("ids", ids)
    raw_a, raw_b = _both("raw", raw)
    group_labels = _groups(groups, first, rows_a, rows_b)
    first = _with(first, "a", ids=ids_a, groups=group_labels, labels=labels, raw=raw_a)
    if within is not None and column is None:
        first = replace(first, within=_shared(within, len(first.h)))
    second = _with(second, "b", ids=ids_b, raw=raw_b)
    pairs: PairedLatents = match(first, second, intersect=intersect)
    study = make_study(
        pairs,
        share=share,
        blocks=blocks,
        permutations=permutations,
        rows=rows,
        limit=limit,
        seed=seed,
        independent=independent,
    )
    return align_models(pairs, kind, study, metrics=tuple(METRICS) if full else MAIN)


def _check_options(kind: str, permutations: int, rows: int, share: float | None, blocks: int | None) -> None:
    if kind not in get_args(MapKind):
        raise InputError(
            f"kind is {kind!r}, but it must be a kind of map. {did_you_mean(str(kind), get_args(MapKind))}"
        )
    check_count("permutations", permutations, ENOUGH)
    check_count("rows", rows)
    if blocks is not None:
        check_count("blocks", blocks)
    if share is not None and not 0 < share < 1:
        raise InputError(f"share is {share}, but it must be between 0 and 1.")


def _names(a: Any, b: Any) -> tuple[str, str]:
    """The names of the files, or a and b."""
    paths = as_path("a", a), as_path("b", b)
    if paths[0] is not None and paths[1] is not None:
        first, second = model_names([paths[0], paths[1]])
        return first, second
    return ("a" if paths[0] is None else paths[0].stem, "b" if paths[1] is None else paths[1].stem)


def _episodes(name: str, given: Any) -> Matrix | None:
    """The rows of an array or of episodes; None for a path, which is read with all of its arrays."""
    return None if as_path(name, given) is not None else as_matrix(name, given)


def _latents(name: str, given: Any, matrix: Matrix | None, title: str, within: str | None) -> Latents:
    return read_latents(Path(given), name=title, within=within) if matrix is None else Latents(title, matrix.rows)


def _shared(within: Any, rows: int) -> np.ndarray:
    """One value or several for each row."""
    if getattr(within, "ndim", 1) == 2:
        matrix = as_matrix("within", within).rows
        if len(matrix) != rows:
            raise InputError(f"'within' must have a value for each of the {rows} rows of 'a', but has {len(matrix)}.")
        return matrix
    return as_column("within", within, rows)


def _groups(groups: Any, first: Latents, a: Matrix | None, b: Matrix | None) -> np.ndarray | None:
    """The groups of a's rows: those given, or the episodes of a list."""
    if a is None:
        return None if groups is None else as_column("groups", groups, len(first.h))
    paired = b if b is not None and len(b.rows) == len(a.rows) else None  # with ids, b may have other rows
    return combine_groups(groups, a=a, b=paired)


def _both(name: str, given: Any) -> tuple[Any, Any]:
    if given is None:
        return None, None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(f"'{name}' must be a pair, one for 'a' and one for 'b', not a {type(given).__name__}.")
    if given[0] is None or given[1] is None:
        raise InputError(f"'{name}' must be given for both models.")
    return given[0], given[1]


def _with(latents: Latents, side: str, *, raw: Any = None, **columns: Any) -> Latents:
    """Latents with further arrays of the same rows."""
    count = len(latents.h)
    found = {
        name: as_column(name if name == "groups" else f"{name} of {side}", column, count)
        for name, column in columns.items()
        if column is not None
    }
    if raw is not None:
        found["raw"] = as_array(f"raw of {side}", raw)
    return replace(latents, **found)
