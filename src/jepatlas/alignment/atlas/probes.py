"""Probes in an atlas: each travels with the chart that it reads, and reads any other chart through the frame."""

from __future__ import annotations

from jepatlas.alignment.atlas.atlas import Atlas
from jepatlas.alignment.atlas.charts import Attachment
from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.alignment.probes.probe_migration import migrate
from jepatlas.core.errors import InputError

__all__ = ["attach_probe", "probe_for", "probe_of"]

KIND = "probe"


def attach_probe(atlas: Atlas, chart: str, name: str, probe: LinearProbe) -> Atlas:
    """The atlas with the probe `name` on the chart whose latents it reads."""
    if len(probe.x_mean) != (width := atlas.chart(chart).width):
        raise InputError(f"The probe '{name}' reads {len(probe.x_mean)} dimensions, but '{chart}' has {width}.")
    return atlas.attach(chart, Attachment(KIND, name, probe.to_bytes()))


def probe_of(atlas: Atlas, chart: str, name: str) -> LinearProbe:
    """The probe `name` of a chart."""
    data = atlas.chart(chart).attachment(KIND, name).data
    return LinearProbe.from_bytes(data, f"What the chart '{chart}' carries as its probe '{name}'")


def probe_for(atlas: Atlas, chart: str, name: str, source: str) -> LinearProbe:
    """The probe `name` of the chart `source`, made to read `chart`: no training, or a refusal that says why."""
    return migrate(probe_of(atlas, source, name), atlas.map(source, chart))
