"""Federation through one shared folder: results, rejected input, and resumed members."""

from __future__ import annotations

import hashlib
import pickle
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jepatlas.alignment import Atlas, ChartLatents, load_atlas
from jepatlas.core.arrays import write_arrays
from jepatlas.core.errors import InputError
from jepatlas.core.sealing import write_sealed_folder
from jepatlas.workflows.federation import (
    Absent,
    Federation,
    Member,
    Offer,
    agree,
    federate,
    federation_record,
    hide,
    join,
    offer_of,
    read_message,
    write_message,
)
from jepatlas.workflows.federation.agreed_states import common_groups
from jepatlas.workflows.federation.exchange_folder import Exchange

WORLD = np.random.default_rng(0).standard_normal((60, 3))


def offer(start: int, stop: int, width: int, seed: int, noise: float = 0.05) -> Offer:
    """Latents of the states start … stop of one world through a random map. Three states form one object."""
    rng = np.random.default_rng(seed)
    h = WORLD @ rng.standard_normal((3, width)) + noise * rng.standard_normal((60, width))
    states = np.arange(60)[start:stop]
    ids = np.array([f"state-{number}" for number in states])
    rows = rng.permutation(len(ids))  # every member has its own order
    controls = {"pca": rng.standard_normal((len(ids), 2)).astype(np.float32)}
    groups = np.array([f"{seed}-object-{number // 3}" for number in states])  # every member has its own names
    return Offer(ids, h[states].astype(np.float32), groups, controls).take(rows)


def member(name: str, tmp_path: Path, **given: object) -> Member:
    return replace(Member(name, tmp_path / "meet", tmp_path / name, controls=True, timeout=60.0), **given)


def meet(offers: Mapping[str, Offer], tmp_path: Path, **given: object) -> dict[str, Federation]:
    """Run all members in parallel."""
    with ThreadPoolExecutor(len(offers)) as pool:
        calls = {
            name: pool.submit(federate, one, member(name, tmp_path, members=len(offers), **given))
            for name, one in offers.items()
        }
        return {name: call.result() for name, call in calls.items()}


def test_random_networks_replace_missing_untrained_networks(tmp_path: Path) -> None:
    """Ada and Cleo send the latents of their untrained networks; Ben has none."""
    rng, made = np.random.default_rng(4), {}
    for name, one in (TWO | {"cleo": offer(6, 45, 6, 3)}).items():
        random = rng.standard_normal((len(one.ids), 2)).astype(np.float32)
        made[name] = replace(one, controls={"random": random} | ({} if name == "ben" else {"untrained": one.h}))
    found = meet(made, tmp_path)["ada"]
    assert set(found.controls["untrained"]) == {"translation.ada.cleo", "translation.cleo.ada"}
    assert {name.split(".", 1)[1] for name in found.controls["random"]} == {
        "ada.ben",
        "ben.ada",
        "ben.cleo",
        "cleo.ben",
    }
    record = federation_record(found, made["ada"], member("ada", tmp_path, members=3))
    judged = {one.name: one for one in record.verdicts}
    assert judged["beyond_untrained.ada.cleo"].passed is False  # the models equal their untrained versions
    assert judged["beyond_random.ada.ben"].passed and "beyond_random.ada.cleo" not in judged
    assert record.tables[0].columns[4:] == [
        "PCA of the raw input",
        "the same networks, untrained",
        "a random network on the raw input",
    ]


def test_controls_follow_from_the_arrays_of_a_file(tmp_path: Path) -> None:
    h, raw = WORLD, np.random.default_rng(0).standard_normal((60, 5))
    for given, kinds in (
        ({}, set()),
        ({"raw": raw}, {"pca", "random"}),
        ({"untrained": h}, {"untrained"}),
        ({"raw": raw, "untrained": h}, {"pca", "random", "untrained"}),
    ):
        write_arrays(tmp_path / "ada.npz", {"h": h, "ids": np.arange(60), **given})
        assert set(offer_of(tmp_path / "ada.npz").controls) == kinds


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


TWO = {"ada": offer(0, 48, 3, 1), "ben": offer(9, 60, 3, 2)}


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished federation of Ada and Ben."""
    place = tmp_path_factory.mktemp("met")
    meet(TWO, place)
    return place


@pytest.fixture
def finished(met: Path, tmp_path: Path) -> Path:
    """A copy of the finished federation."""
    return Path(shutil.copytree(met, tmp_path / "finished"))


def test_three_members_of_different_widths_get_the_same_atlas(tmp_path: Path) -> None:
    offers = TWO | {"cleo": offer(6, 45, 6, 3)}
    found = meet(offers, tmp_path)
    first, *others = (files(tmp_path / name / "atlas") for name in offers)
    assert all(one == first for one in others)
    atlas = found["ada"].atlas
    assert atlas.names == ["ada", "ben", "cleo"] and found["ben"].agreed == 36 == len(atlas.anchors.ids)
    # reference: an atlas built centrally from the states that all three share
    shared = set.intersection(*(set(one.ids.tolist()) for one in offers.values()))
    charts = []
    for name, one in offers.items():
        rows = [row for row, state in enumerate(one.ids) if state in shared]
        charts.append(ChartLatents(name, one.h[rows], one.ids[rows]))
    whole, probe = Atlas.build(charts), offers["cleo"].h[:5]
    for target in ("ada", "ben"):
        np.testing.assert_allclose(
            atlas.translate(probe, "cleo", target), whole.translate(probe, "cleo", target), atol=1e-5
        )
    judged = {one.name: one for one in atlas.judged or ()}
    assert judged["translation.ada.cleo"].passed and judged["cycle.atlas"].passed
    assert len([name for name in judged if name.startswith("translation.")]) == 6


def test_normalised_latents_are_fully_tied(tmp_path: Path) -> None:
    """A layer normalisation removes one of the eight directions, which is not counted as lost."""
    offers = {}
    for seed, name in enumerate(("ada", "ben")):
        one = offer(0, 60, 8, seed, noise=0.5)
        offers[name] = replace(one, h=one.h - one.h.mean(1, keepdims=True))
    found = meet(offers, tmp_path)["ada"]
    record = federation_record(found, offers["ada"], member("ada", tmp_path))
    tied = {one.name: one for one in record.verdicts if one.name.endswith(".tied")}
    assert tied.keys() == {"ada.tied", "ben.tied"}
    assert all(one.value == 7 and one.passed is None and "layer normalisation" in one.advice for one in tied.values())


def test_record_lists_every_exchanged_file_with_size_and_hash(met: Path) -> None:
    message_folder, listed = files(met / "meet"), {}
    for name in ("ada", "ben"):
        me = member(name, met)
        record = federation_record(federate(TWO[name], me), TWO[name], me)  # a finished federation is not recomputed
        _, sent, received, stayed = record.tables
        assert sent.rows[-1][4] == sum(row[4] for row in sent.rows[:-1])
        own = {row[1]: (row[4], row[5]) for row in sent.rows[:-1]}
        others = {row[1]: (row[4], row[5]) for row in received.rows[:-1]}
        assert not set(own) & set(others) and {**own, **others}.keys() == message_folder.keys()
        listed |= own
        assert ["latents of states that were not agreed on", f"{len(TWO[name].ids) - 39} × 3"] in stayed.rows
        assert any(v.name == "beyond_pca.ada.ben" and v.passed for v in record.verdicts)
    assert listed == {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in message_folder.items()}
    latents = next(row for row in sent.rows if row[1] == "2-latents/ben/latents.safetensors")
    assert latents[3] == "39 × 3 float32"


def test_only_latents_and_maps_are_sent_by_default(tmp_path: Path) -> None:
    """Groups are sent as numbers, unless `groups=False`."""
    assert not Member("ada", tmp_path / "meet", tmp_path / "ada").controls
    for groups in (True, False):
        place = tmp_path / str(groups)
        found = meet(TWO, place, controls=False, groups=groups)
        sent = {path.name for path in (place / "meet" / "2-latents" / "ada").iterdir()}
        assert sent == {"exchange.json", "latents.safetensors", *(["groups.safetensors"] if groups else [])}
        record = federation_record(found["ada"], TWO["ada"], member("ada", place))
        assert "No controls were sent" in record.summary and found["ada"].controls == {}


def test_too_few_agreed_states_are_reported(met: Path, tmp_path: Path) -> None:
    offers = {"ada": offer(0, 48, 12, 1), "ben": offer(9, 60, 3, 2)}
    found = meet(offers, tmp_path, anchors=9)
    record = federation_record(found["ada"], offers["ada"], member("ada", tmp_path))
    assert "9 agreed states do not determine maps of latents with 12 dimensions" in record.summary
    enough = member("ada", met)
    record = federation_record(federate(TWO["ada"], enough), TWO["ada"], enough)
    assert "do not determine" not in record.summary and record.summary.endswith("were sent.")
    matrix = np.array(record.figures[0].matrix)
    assert (np.diag(matrix) == 1).all() and (matrix[~np.eye(2, dtype=bool)] < 1).all()


def test_exchange_contains_no_names_of_states_or_groups(met: Path) -> None:
    everything = b"".join(files(met / "meet").values())
    assert b"state-" not in everything and b"object" not in everything


@pytest.mark.parametrize("after", ["1-states", "2-latents", "3-maps", "4-seals"])
def test_member_killed_after_any_round_resumes_to_the_same_atlas(after: str, finished: Path) -> None:
    before = files(finished / "ada" / "atlas")
    steps = [step for step in ("1-states", "2-latents", "3-maps", "4-seals") if step > after]
    for folder in (
        *(finished / "meet" / step / "ben" for step in steps),
        *(finished / "ben" / "sent" / step for step in steps),
        finished / "ben" / "atlas",
    ):
        shutil.rmtree(folder)
    shutil.rmtree(finished / "meet" / after / "ben")  # written locally, not yet exchanged
    federate(TWO["ben"], member("ben", finished, timeout=5.0))
    assert files(finished / "ben" / "atlas") == before


def test_damaged_files_are_named(finished: Path) -> None:
    place = finished / "meet" / "2-latents" / "ben" / "latents.safetensors"
    whole = place.read_bytes()
    for spoiled in (whole[:-40], whole[:-1] + bytes([whole[-1] ^ 1])):
        place.write_bytes(spoiled)
        with pytest.raises(InputError, match=r"2-latents/ben/latents\.safetensors"):
            federate(TWO["ada"], member("ada", finished))
    place.unlink()  # a missing file may still arrive
    with pytest.raises(Absent, match=r"ben .*'2-latents'"):
        federate(TWO["ada"], member("ada", finished, timeout=0.2))


def test_resealed_files_are_detected(finished: Path) -> None:
    place = finished / "meet" / "2-latents" / "ben"
    message = read_message(place)
    write_message(
        place, {"member": "ben", "members": ["ada", "ben"]}, {**message.arrays, "latents": message.arrays["pca"]}
    )
    with pytest.raises(InputError, match="2-latents/ben"):
        federate(TWO["ben"], member("ben", finished))
    with pytest.raises(InputError, match=r"'ada' .*other files"):
        federate(TWO["ada"], member("ada", finished))


@contextmanager
def swapped(place: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace ben's message by a resealed one with other numbers while its round is read, then restore it."""
    receive, message, aside = Exchange.receive, read_message(place), place.parents[1] / "aside"

    def received(self: Exchange, step: str, *given: Any) -> Any:
        if step != place.parent.name:
            return receive(self, step, *given)
        shutil.copytree(place, aside)
        content = {key: message.content[key] for key in ("member", "members")}
        write_message(place, content, {**message.arrays, kind: message.arrays[kind] + 1})
        try:
            return receive(self, step, *given)
        finally:
            shutil.rmtree(place)
            aside.rename(place)

    with monkeypatch.context() as patch:
        patch.setattr(Exchange, "receive", received)
        yield


def forget(finished: Path, *parts: str) -> None:
    for part in parts:
        shutil.rmtree(finished / part)


def test_message_swapped_while_it_is_read_is_detected(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The swapped controls do not affect the atlas; only the recorded hashes reveal them."""
    message_folder = finished / "meet" / "2-latents" / "ben"
    before = files(message_folder)
    forget(finished, "meet/3-maps/ada", "meet/4-seals/ada", "ada/sent/3-maps", "ada/sent/4-seals")
    with swapped(message_folder, "pca", monkeypatch), pytest.raises(InputError, match="ben read other files"):
        federate(TWO["ada"], member("ada", finished))
    assert files(message_folder) == before
    with pytest.raises(InputError, match="ada read other files"):
        federate(TWO["ben"], member("ben", finished))


def test_swapped_message_is_detected_after_resuming(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message_folder, waiting = finished / "meet" / "2-latents" / "ben", finished / "waiting"
    forget(finished, "meet/3-maps/ada", "meet/4-seals/ada", "ada/sent/3-maps", "ada/sent/4-seals")
    (finished / "meet" / "3-maps" / "ben").rename(waiting)
    with swapped(message_folder, "latents", monkeypatch), pytest.raises(Absent, match=r"ben .*'3-maps'"):
        federate(TWO["ada"], member("ada", finished, timeout=0.2))
    waiting.rename(finished / "meet" / "3-maps" / "ben")
    with pytest.raises(InputError, match=r"'ada' .*other files .*meet"):
        federate(TWO["ada"], member("ada", finished))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    write_sealed_folder(tmp_path / "ada", "exchange", 1, {}, {"latents.safetensors": pickle.dumps({"latents": 1})})
    with pytest.raises(InputError, match=r"latents\.safetensors"):
        read_message(tmp_path / "ada")


def test_members_without_shared_states_are_rejected(tmp_path: Path) -> None:
    apart = {"ada": offer(0, 20, 4, 1), "ben": offer(20, 60, 4, 2)}
    with pytest.raises(InputError, match=r"0 states .*ada 20, ben 40; .*ada and ben 0"):
        meet(apart, tmp_path)
    assert not (tmp_path / "meet" / "2-latents").exists()


def test_absent_member_is_named_and_can_join_in_a_later_run(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="ada of 2 members"):
        federate(TWO["ada"], member("ada", tmp_path, timeout=0.2))
    assert meet(TWO, tmp_path)["ada"].atlas.names == ["ada", "ben"]


def test_late_member_sends_its_map_only_and_keeps_the_atlas(finished: Path) -> None:
    before, cleo = files(finished / "meet"), offer(12, 50, 3, 3)
    founded = load_atlas(finished / "ada" / "atlas")
    me = member("cleo", finished)
    found = join(cleo, me)
    new = {name for name in files(finished / "meet") if name not in before}
    assert new == {f"5-joined/cleo/{file}" for file in ("atlas.json", "anchors.safetensors", "charts/cleo.safetensors")}
    assert before.items() <= files(finished / "meet").items()
    for name in ("ada", "ben"):
        federate(TWO[name], member(name, finished))
        assert files(finished / name / "atlas") == files(finished / "cleo" / "atlas")
        assert (founded.chart(name).into.weight == found.atlas.chart(name).into.weight).all()
    assert next(one for one in found.atlas.judged or () if one.name == "joins.cleo").passed
    received = federation_record(found, cleo, me).tables[2].rows
    assert not any("2-latents" in row[1] for row in received)  # a late member reads no latents


def test_unexpected_members_are_rejected(finished: Path) -> None:
    with pytest.raises(InputError, match=r"2 members .*: ada, ben"):
        federate(offer(0, 60, 4, 3), member("cleo", finished))
    with pytest.raises(InputError, match=r"another member.* 'ada'"):
        federate(TWO["ada"], member("ada", finished, out=finished / "elsewhere"))
    with pytest.raises(InputError, match="other settings or states"):
        federate(TWO["ada"], member("ada", finished, seed=1))
    with pytest.raises(InputError, match="another agent"):
        federate(replace(TWO["ada"], h=-TWO["ada"].h), member("ada", finished))
    with pytest.raises(InputError, match="'ada'"):
        join(TWO["ada"], member("ada", finished))
    with pytest.raises(InputError, match="0 of the 39 anchors"):
        join(TWO["ada"], member("cleo", finished, phrase="another"))


def test_members_must_agree_on_the_settings(tmp_path: Path) -> None:
    channel = member("ben", tmp_path, seed=3).channel
    channel.send(
        "1-states", lambda place: write_message(place, {"member": "ben", "members": 2, "anchors": 9, "seed": 3})
    )
    with pytest.raises(InputError, match=r"disagree on --seed \(ada 0, ben 3\)"):
        federate(TWO["ada"], member("ada", tmp_path))


def test_shared_states_are_found_by_their_hashes() -> None:
    lists = {name: np.array(sorted(hide(one.ids, "us"))) for name, one in TWO.items()}
    shared = set(TWO["ada"].ids.tolist()) & set(TWO["ben"].ids.tolist())
    assert set(agree(lists, 100).tolist()) == set(hide(np.array(sorted(shared)), "us").tolist())
    assert agree(lists, 5).tolist() == agree(lists, 100).tolist()[:5]
    with pytest.raises(InputError, match="--phrase"):
        agree({"ada": lists["ada"], "ben": np.sort(hide(TWO["ben"].ids, "others"))}, 100)


def test_common_groups_keep_the_groups_of_all_members_whole() -> None:
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 12, 20) for _ in range(2)]
    found = common_groups(labels)
    together = np.any([one[:, None] == one for one in labels], axis=0)
    for _ in range(20):  # transitive closure
        together = together @ together
    assert found is not None and ((found[:, None] == found) == together).all()
    assert common_groups([]) is None


def test_offers_need_unique_ids(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"1 state.* more than one latent.*'cup'"):
        Offer(np.array(["cup", "cup", "mug"]), np.zeros((3, 2), np.float32))
    np.save(tmp_path / "h.npy", np.zeros((3, 2)))
    with pytest.raises(InputError, match="has no ids"):
        offer_of(tmp_path / "h.npy")
    with pytest.raises(InputError, match="--part"):
        offer_of(tmp_path / "h.npy", "all")


def test_random_networks_are_not_sent_if_all_have_untrained_ones(tmp_path: Path) -> None:
    made = {name: replace(one, controls={"random": one.h, "untrained": one.h}) for name, one in TWO.items()}
    assert set(meet(made, tmp_path)["ada"].controls) == {"untrained"}
    sent = {path.name for path in (tmp_path / "meet/2-latents/ada").iterdir()}
    assert "untrained.safetensors" in sent and "random.safetensors" not in sent


def test_controls_are_sent_only_if_all_members_give_them(tmp_path: Path) -> None:
    """Controls of one member alone would reveal its inputs without any use."""
    messages: dict[str, list[str]] = {"ada": [], "ben": []}
    with ThreadPoolExecutor(2) as pool:
        calls = [
            pool.submit(federate, one, member(name, tmp_path, controls=name == "ben"), messages[name].append)
            for name, one in TWO.items()
        ]
        assert [call.result().controls for call in calls] == [{}, {}]
    sent = {path.name for path in (tmp_path / "meet/2-latents/ben").iterdir()}
    assert sent == {"exchange.json", "latents.safetensors", "groups.safetensors"}
    assert any("Controls" in line and "ada" in line and "--controls" in line for line in messages["ben"])
    assert not any("Controls" in line for line in messages["ada"])
