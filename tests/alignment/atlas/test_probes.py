"""A probe trained on one chart reads another through the atlas, also after the atlas was mailed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gaussian_worlds import rotation

from jepatlas.alignment.atlas.atlas_folder import load_atlas, save_atlas
from jepatlas.alignment.atlas.chart import Attachment, ChartLatents
from jepatlas.alignment.atlas.chart_atlas import Atlas, attach_probe, probe_for, probe_of
from jepatlas.alignment.probes.linear_probe import LinearProbe
from jepatlas.core.errors import InputError


def test_a_mailed_probe_reads_the_other_chart(tmp_path: Path):
    z = np.random.default_rng(0).standard_normal((600, 3))
    labels = np.array(["left", "right", "up"])[np.argmax(z, axis=1)]
    a, b = z @ rotation(3) * [1, 5, 2] + 1, z @ rotation(3, seed=1) - 4
    atlas = Atlas.build([ChartLatents("a", a, np.arange(600)), ChartLatents("b", b, np.arange(600))])
    probe = LinearProbe.fit(a, labels)
    save_atlas(attach_probe(atlas, "a", "way", probe), tmp_path / "atlas")
    found = load_atlas(tmp_path / "atlas")
    np.testing.assert_array_equal(probe_of(found, "a", "way").logits(a), probe.logits(a))
    moved = probe_for(found, "b", "way", source="a")
    np.testing.assert_allclose(moved.logits(b), probe.logits(found.translate(b, "b", "a")), atol=1e-6)
    np.testing.assert_allclose(moved.logits(b), probe.logits(a), atol=1e-6)  # both are linear in z
    assert np.mean(moved.predict(b) == labels) > 0.95


def test_bad_input():
    z = np.random.default_rng(0).standard_normal((50, 2))
    atlas = Atlas.build([ChartLatents(name, z, np.arange(50)) for name in "ab"])
    with pytest.raises(InputError, match="'p' reads 1 dimensions, but 'a' has 2"):
        attach_probe(atlas, "a", "p", LinearProbe.fit(z[:, :1], z[:, 0] > 0))
    damaged = atlas.attach("a", Attachment("probe", "q", b"no probe"))
    with pytest.raises(InputError, match="'q' of the chart 'a' is not a saved LinearProbe"):
        probe_of(damaged, "a", "q")
    with pytest.raises(InputError, match="has no probe 'p'"):
        probe_of(atlas, "a", "p")
