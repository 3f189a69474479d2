"""Probes in an atlas: each travels with the chart that it reads, and reads any other chart through the frame."""

from __future__ import annotations

import tempfile
from pathlib import Path

from jepatlas.align.atlas import Atlas
from jepatlas.align.charts import Attachment
from jepatlas.align.migration import migrate
from jepatlas.align.probes import LinearProbe
from jepatlas.base.errors import InputError

__all__ = ["attach_probe", "probe_for", "probe_of"]

KIND = "probe"


def attach_probe(atlas: Atlas, chart: str, name: str, probe: LinearProbe) -> Atlas:
    """The atlas with the probe `name` on the chart whose latents it reads."""
    if len(probe.x_mean) != (width := atlas.chart(chart).width):
        raise InputError(f"The probe '{name}' reads {len(probe.x_mean)} dimensions, but '{chart}' has {width}.")
    with tempfile.TemporaryDirectory() as folder:  # a probe's own format is that of a file
        probe.save(path := Path(folder) / name)
        return atlas.attach(chart, Attachment(KIND, name, path.read_bytes()))


def probe_of(atlas: Atlas, chart: str, name: str) -> LinearProbe:
    """The probe `name` of a chart."""
    data = atlas.chart(chart).attachment(KIND, name).data
    with tempfile.TemporaryDirectory() as folder:
        (path := Path(folder) / name).write_bytes(data)
        return LinearProbe.load(path)


def probe_for(atlas: Atlas, chart: str, name: str, source: str) -> LinearProbe:
    """The probe `name` of the chart `source`, made to read `chart`: no training, or a refusal that says why."""
    return migrate(probe_of(atlas, source, name), atlas.map(source, chart))
