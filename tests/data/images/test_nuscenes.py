"""nuScenes tables and folders in the published layout, complete and with missing parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jepatlas.core.errors import InputError
from jepatlas.data.images import MultiViewTable, read_nuscenes, split_states
from jepatlas.recipes import NuScenes

CAMERAS = ("CAM_FRONT", "CAM_BACK", "CAM_FRONT_LEFT")
Tables = dict[str, list[dict[str, Any]]]


def tables() -> Tables:
    """Two scenes of three samples, three cameras and a lidar; each sensor also has one sweep between key frames."""
    sensors = [*CAMERAS, "LIDAR_TOP"]
    found: Tables = {
        "log": [{"token": "log0", "location": "boston-seaport", "vehicle": "n008", "date_captured": "2018-08-01"}],
        "scene": [{"token": f"sc{s}", "name": f"scene-000{s}", "log_token": "log0", "nbr_samples": 3} for s in (0, 1)],
        "sample": [
            {"token": f"sa{s}{t}", "timestamp": 10**15 + 10 * s + t, "scene_token": f"sc{s}", "prev": ""}
            for s in (0, 1)
            for t in range(3)
        ],
        "sensor": [
            {"token": f"se-{name}", "channel": name, "modality": "camera" if "CAM" in name else "lidar"}
            for name in sensors
        ],
        "calibrated_sensor": [
            {
                "token": f"ca{s}-{name}",
                "sensor_token": f"se-{name}",
                "translation": [0, 0, 0],
                "rotation": [1, 0, 0, 0],
                "camera_intrinsic": [],
            }
            for s in (0, 1)
            for name in sensors
        ],
    }
    found["sample_data"] = [
        {
            "token": f"sd{sample['token']}-{name}-{key}",
            "sample_token": sample["token"],
            "ego_pose_token": "",
            "calibrated_sensor_token": f"ca{sample['scene_token'][-1]}-{name}",
            "timestamp": sample["timestamp"],
            "fileformat": "jpg",
            "is_key_frame": key,
            "height": 4,
            "width": 6,
            "prev": "",
            "next": "",
            "filename": f"{'samples' if key else 'sweeps'}/{name}/"
            f"{sample['token']}.{'jpg' if 'CAM' in name else 'bin'}",
        }
        for sample in reversed(found["sample"])
        for name in sensors
        for key in (True, False)
    ]
    return found


def write(folder: Path, given: Tables, version: str = "v1.0-mini") -> Path:
    """Write the tables and the camera images of key frames only; nothing else is needed."""
    (folder / version).mkdir(parents=True)
    for name, records in given.items():
        (folder / version / f"{name}.json").write_text(json.dumps(records))
    for number, record in enumerate(given["sample_data"]):
        if record["is_key_frame"] and "CAM" in record["filename"]:
            (folder / record["filename"]).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((4, 6, 3), number, np.uint8)).save(folder / record["filename"])
    return folder


def test_cameras_are_paired_by_sample(tmp_path: Path):
    table = read_nuscenes(write(tmp_path, tables()))
    assert isinstance(table, MultiViewTable) and len(table) == 6 * 3 and table.views == sorted(CAMERAS)
    front, back = table.pairs("CAM_FRONT", "CAM_BACK")
    assert table.column("state")[front].tolist() == table.column("state")[back].tolist()
    assert table.column("state")[front].tolist() == ["sa00", "sa01", "sa02", "sa10", "sa11", "sa12"]  # in order of time
    assert table.column("group")[front].tolist() == ["scene-0000"] * 3 + ["scene-0001"] * 3
    assert set(table.column("location")) == {"boston-seaport"}
    assert table.column("path")[front[0]] == "samples/CAM_FRONT/sa00.jpg"
    assert table.images(front, mode="grey").shape == (6, 4, 6)


def test_some_cameras_and_one_of_several_versions(tmp_path: Path):
    write(tmp_path, tables())
    (tmp_path / "v1.0-test").mkdir()
    (tmp_path / "v1.0-test" / "sample_data.json").write_text("[]")
    with pytest.raises(InputError, match=r"v1.0-mini,.*v1.0-test..*\(--images.version\)"):
        read_nuscenes(tmp_path)
    table = read_nuscenes(tmp_path, "v1.0-mini", cameras=["CAM_BACK"])
    assert table.views == ["CAM_BACK"] and len(table) == 6
    with pytest.raises(InputError, match=r"'CAM_BAK'.*'CAM_BACK'"):
        read_nuscenes(tmp_path, "v1.0-mini", cameras=["CAM_BAK"])
    with pytest.raises(InputError, match=r"v1\.0-trainval"):
        read_nuscenes(tmp_path, "v1.0-trainval")


def test_recipe_reads_only_its_cameras(tmp_path: Path):
    write(tmp_path, tables())
    (tmp_path / "samples" / "CAM_BACK" / "sa01.jpg").unlink()
    with pytest.raises(InputError, match="1 of 18 images"):
        NuScenes(str(tmp_path)).read()
    named = NuScenes(str(tmp_path), cameras=("CAM_FRONT", "CAM_FRONT_LEFT")).read()
    assert named.views == ["CAM_FRONT", "CAM_FRONT_LEFT"] and len(named) == 12


def test_splits_keep_scenes_whole(tmp_path: Path):
    table = read_nuscenes(write(tmp_path, tables()))
    fit, score = split_states(table, 0.5, seed=0)
    assert not set(table.column("group")[fit]) & set(table.column("group")[score]) and len(fit) == len(score) == 9


@pytest.mark.parametrize(
    ("name", "number", "field", "message"),
    [
        ("sample_data", 0, "sample_token", "token 'sdsa12-CAM_FRONT-True' refers to sample_token 'gone'"),
        ("sample_data", 0, "calibrated_sensor_token", "'gone',.*calibrated_sensor.json"),
        ("calibrated_sensor", 0, "sensor_token", "calibrated_sensor.json: token 'ca0-CAM_FRONT' refers"),
        ("sample", 0, "scene_token", "token.*'sa00'.*scene_token.*'gone',"),
        ("scene", 1, "log_token", "scene.json: token 'sc1' refers to log_token 'gone'"),
        ("sample_data", 0, "filename", "token.*'sdsa12-CAM_FRONT-True'.*1.*18.*images"),
    ],
)
def test_dangling_references_are_named(tmp_path: Path, name: str, number: int, field: str, message: str):
    write(tmp_path, tables())
    given = tables()
    given[name][number][field] = "gone"
    (tmp_path / "v1.0-mini" / f"{name}.json").write_text(json.dumps(given[name]))
    with pytest.raises(InputError, match=message):
        read_nuscenes(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[{", "not valid JSON"),
        ("{}", r"\.json is not"),
        ('[{"name": 1}]', r"\.json is not"),
        ('[{"token": "a"}]', "token 'a' has no is_key_frame"),
        ("[]", "has no key frame of a camera"),
    ],
)
def test_invalid_json_tables_are_rejected(tmp_path: Path, text: str, message: str):
    write(tmp_path, tables())
    (tmp_path / "v1.0-mini" / "sample_data.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_nuscenes(tmp_path)


def test_missing_tables_and_images_are_named(tmp_path: Path):
    with pytest.raises(InputError, match="no folder"):
        read_nuscenes(tmp_path)
    write(tmp_path, tables())
    (tmp_path / "samples" / "CAM_BACK" / "sa01.jpg").unlink()
    with pytest.raises(InputError, match=r"token 'sdsa01-CAM_BACK-True' names samples/CAM_BACK/sa01\.jpg"):
        read_nuscenes(tmp_path)
    (tmp_path / "v1.0-mini" / "scene.json").unlink()
    with pytest.raises(InputError, match=r"scene\.json"):
        read_nuscenes(tmp_path)


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("sample_data", {"filename": None}, r"sample_data\.json:.*token.*'new'.*filename"),
        ("sample_data", {"filename": ""}, "token.*'new'.*filename.*\"\",.*name"),
        ("sample_data", {"filename": "/a\0.jpg"}, "token.*'new'.*filename.*name"),
        ("sample_data", {"filename": "a" * 999}, "token 'new' names aaa.* 1 of 19 images are missing"),
        ("sample_data", {"filename": "../a.jpg"}, r"_data\.json: token 'new' names \.\./a\.jpg, which lies outside"),
        ("sample_data", {"filename": "/etc/motd"}, r"_data\.json: token 'new' names /etc/motd, which lies outside"),
        ("sample_data", {"is_key_frame": None}, "'new'.*is_key_frame"),
        ("sample_data", {"sample_token": ["sa00"]}, r'sample_token.*\["sa00"\],'),
        ("sample_data", {"calibrated_sensor_token": {}}, "calibrated_sensor_token"),
        ("sample_data", {"token": ["a"]}, r"sample_data\.json.*48"),
        ("sample_data", {"token": None}, r"sample_data\.json.*48"),
        ("sensor", {"channel": None, "modality": "camera"}, r"sensor\.json: token 'new' has the channel null, but"),
        ("sensor", {"channel": 3, "modality": "camera"}, r"sensor\.json:.*token.*'new'.*channel.*3,"),
        ("scene", "scene-0000", r'scene\.json.*2.*"scene-0000"\.'),
        ("log", None, r"log\.json.*1.*null\."),
        ("sample", {"token": "sa00", "timestamp": 1}, r"sample\.json:.*6.*token.*'sa00'"),
    ],
)
def test_invalid_entries_are_named(tmp_path: Path, name: str, entry: Any, message: str):
    write(tmp_path, tables())
    given: dict[str, list[Any]] = dict(tables())
    if name == "sample_data":  # an image of another sample
        given["sample"].append({**given["sample"][0], "token": "other"})
        entry = {**given[name][0], "sample_token": "other", "token": "new", **entry}
    given[name].append({"token": "new", **entry} if isinstance(entry, dict) else entry)
    for table in (name, "sample"):
        (tmp_path / "v1.0-mini" / f"{table}.json").write_text(json.dumps(given[table]))
    with pytest.raises(InputError, match=message):
        read_nuscenes(tmp_path)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("sample", "timestamp", None),
        ("sample", "scene_token", []),
        ("scene", "name", None),
        ("scene", "name", " "),
        ("scene", "log_token", 7),
        ("log", "location", None),
        ("calibrated_sensor", "sensor_token", {"a": 1}),
    ],
)
def test_fields_of_wrong_type_are_named(tmp_path: Path, name: str, field: str, value: Any):
    write(tmp_path, tables())
    given = tables()
    given[name][0][field] = value
    (tmp_path / "v1.0-mini" / f"{name}.json").write_text(json.dumps(given[name]))
    with pytest.raises(InputError, match=rf"{name}\.json: token '{given[name][0]['token']}' has the {field} "):
        read_nuscenes(tmp_path)


@pytest.mark.parametrize("text", ["null", "3", '"a"', '{"token": "a"}'])
@pytest.mark.parametrize("name", ["sensor", "scene"])
def test_tables_that_are_not_lists_are_rejected(tmp_path: Path, name: str, text: str):
    write(tmp_path, tables())
    (tmp_path / "v1.0-mini" / f"{name}.json").write_text(text)
    with pytest.raises(InputError, match=rf"{name}\.json .*{text}"):
        read_nuscenes(tmp_path)


def test_duplicate_key_frame_is_rejected(tmp_path: Path):
    write(tmp_path, tables())
    given = tables()["sample_data"]
    path = tmp_path / "v1.0-mini" / "sample_data.json"
    path.write_text(json.dumps([*given, {**given[0], "token": "again"}]))
    both = "tokens 'sdsa12-CAM_FRONT-True' and 'again' are both key frames of sample 'sa12' from CAM_FRONT"
    with pytest.raises(InputError, match=both):
        read_nuscenes(tmp_path)
    path.write_text(json.dumps([*given, given[0]]))  # a duplicated record counts once
    assert len(read_nuscenes(tmp_path)) == 18


def test_symlinked_folders_are_followed(tmp_path: Path):
    write(tmp_path / "far", tables())
    (tmp_path / "here" / "samples").mkdir(parents=True)
    (tmp_path / "whole").mkdir()
    for name in ("here", "whole"):
        (tmp_path / name / "v1.0-mini").symlink_to("../far/v1.0-mini")
    for camera in CAMERAS:
        (tmp_path / "here" / "samples" / camera).symlink_to(tmp_path / "far" / "samples" / camera)
    (tmp_path / "whole" / "samples").symlink_to("../far/samples")
    expected = read_nuscenes(tmp_path / "far").images(np.arange(18))
    for name in ("here", "whole"):
        assert (read_nuscenes(tmp_path / name).images(np.arange(18)) == expected).all()
