"""TensorFlow reads the shards that tepal writes as the Kaggle notebook reads them, and tepal those of TensorFlow.

    check_shards.py TEPAL
"""
import collections
import csv
import json
import sys
import tempfile
from pathlib import Path

from checking import call, check, end

import numpy as np
import tensorflow as tf

TEPAL = sys.argv[1]
LABELLED = {"image": tf.io.FixedLenFeature([], tf.string), "class": tf.io.FixedLenFeature([], tf.int64)}
UNLABELLED = {"image": tf.io.FixedLenFeature([], tf.string), "id": tf.io.FixedLenFeature([], tf.string)}


def read(folder, features, compression=None):
    """The notebook's way: TFRecordDataset, parse_single_example with a feature specification."""
    files = sorted(str(p) for p in folder.glob("*.tfrec"))
    data = tf.data.TFRecordDataset(files, compression_type=compression)
    return files, [tf.io.parse_single_example(record, features) for record in data]


def counts_in_names(files):
    """The notebook counts the images of a data set from the files' names: NN-WxH-COUNT.tfrec."""
    return sum(int(Path(f).stem.split("-")[-1]) for f in files)


def drawn_shards(folder):
    species, count, size = 3, {"train": 5, "val": 2, "test": 4}, 48
    call(TEPAL, "draw", "--out", folder, "--species", species, "--size", size, *(
        word for split, n in count.items() for word in (f"--{split}", n)))
    for split in ("train", "val"):
        files, examples = read(folder / split, LABELLED)
        classes = collections.Counter(int(e["class"]) for e in examples)
        check(f"draw: TensorFlow reads {split}", classes == {c: count[split] for c in range(species)}, classes)
        check(f"draw: the names of {split} count its records", counts_in_names(files) == len(examples))
        shapes = {tuple(tf.io.decode_jpeg(e["image"], channels=3).shape) for e in examples}
        check(f"draw: pictures of {split}", shapes == {(size, size, 3)}, shapes)
    files, examples = read(folder / "test", UNLABELLED)
    ids = [e["id"].numpy().decode() for e in examples]
    check("draw: test has ids", len(set(ids)) == len(ids) == species * count["test"])
    raw = tf.train.Example.FromString(next(iter(tf.data.TFRecordDataset(files))).numpy())
    check("draw: test has no class", sorted(raw.features.feature) == ["id", "image"], sorted(raw.features.feature))
    with open(folder / "test_labels.csv") as f:
        check("draw: test_labels.csv has the ids of test", sorted(r["id"] for r in csv.DictReader(f)) == sorted(ids))
    with open(folder / "sample_submission.csv") as f:
        check("draw: sample_submission.csv too", sorted(r["id"] for r in csv.DictReader(f)) == sorted(ids))


def photos(folder):
    """A folder per class of random pictures; returns bytes -> class."""
    rng = np.random.default_rng(5)
    made = {}
    for c, name in enumerate(["aster", "bluebell", "clover"]):
        (folder / name).mkdir(parents=True)
        for i in range(20):
            pixels = rng.integers(0, 256, (20 + i, 30, 3), dtype=np.uint8)
            encode = tf.io.encode_png if i % 4 == 0 else tf.io.encode_jpeg
            data = encode(pixels).numpy()
            (folder / name / f"{i}.{'png' if i % 4 == 0 else 'jpg'}").write_bytes(data)
            made[data] = c
    return made


def packed_shards(folder):
    made = photos(folder / "photos")
    call(TEPAL, "pack", folder / "photos", "--out", folder / "packed", "--split", "60,20,20")
    seen = {}
    for split, share in (("train", 12), ("val", 4)):
        files, examples = read(folder / "packed" / split, LABELLED)
        classes = collections.Counter(int(e["class"]) for e in examples)
        check(f"pack: TensorFlow reads {split}, stratified", classes == {c: share for c in range(3)}, classes)
        check(f"pack: the names of {split} count its records", counts_in_names(files) == len(examples))
        seen.update({e["image"].numpy(): int(e["class"]) for e in examples})
    check("pack: bytes and classes are those of the photos", all(made.get(b) == c for b, c in seen.items()))
    _, examples = read(folder / "packed" / "test", {"image": LABELLED["image"]})
    seen.update({e["image"].numpy(): None for e in examples})
    check("pack: every photo is in one split", len(examples) == 12 and seen.keys() == made.keys(), len(examples))
    check("pack: labels.txt", (folder / "packed/labels.txt").read_text().split() == ["aster", "bluebell", "clover"])
    call(TEPAL, "pack", folder / "photos", "--out", folder / "resized", "--image-size", "24x40")
    files, examples = read(folder / "resized" / "train", LABELLED)
    shapes = {tuple(tf.io.decode_jpeg(e["image"]).shape) for e in examples}
    check("pack --image-size: JPEGs of that size", shapes == {(24, 40, 3)}, shapes)
    check("pack --image-size: said in the name", all("-40x24-" in Path(f).name for f in files), files)


def feature(value):
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def tensorflow_shards(folder):
    rng = np.random.default_rng(6)
    for kind in ("", "GZIP", "ZLIB"):
        part = folder / f"by-tensorflow{kind}"
        (part / "train").mkdir(parents=True)
        with tf.io.TFRecordWriter(str(part / "train/00-30x20-7.tfrec"), tf.io.TFRecordOptions(kind)) as writer:
            for i in range(7):
                image = tf.io.encode_jpeg(rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)).numpy()
                values = {"image/encoded": image, "image/class/label": i % 3 + 1, "id": f"n{i}".encode()}
                example = tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in values.items()}))
                writer.write(example.SerializeToString())
        call(TEPAL, "inspect", part / "train/*.tfrec", "--json", part / "found.json", "--image-feature", "image/encoded",
             "--class-feature", "image/class/label", "--label-base", 1)
        found = json.loads((part / "found.json").read_text())
        check(f"inspect: TensorFlow's shards, TF-Slim's features {kind}", found["records"] == 7 and not found["faults"], found)


with tempfile.TemporaryDirectory() as temporary:
    base = Path(temporary)
    drawn_shards(base / "flowers")
    packed_shards(base)
    tensorflow_shards(base)
end()
