"""What a run leaves behind: TensorBoard shows its epochs, Keras answers with best.h5 as tepal does, from JPEG to probability.

    check_run.py TEPAL
"""
import csv
import json
import sys
import tempfile
from pathlib import Path

from checking import call, check, close, end

import h5py
import keras
import numpy as np
import safetensors
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

TEPAL = sys.argv[1]
SPECIES, SIDE = 3, 64


def scalars(run):
    events = EventAccumulator(str(run), size_guidance={"tensors": 0})
    events.Reload()
    return {tag: {e.step: float(make_ndarray(e.tensor_proto)) for e in events.Tensors(tag)} for tag in events.Tags()["tensors"]}


def history_is_shown(run, epochs):
    shown = scalars(run)
    with open(run / "history.csv") as f:
        rows = list(csv.DictReader(f))
    check("history.csv has a line per epoch", [int(r["epoch"]) for r in rows] == list(range(1, epochs + 1)), rows)
    for name in ("loss", "accuracy", "val_loss", "val_accuracy", "learning_rate"):
        wanted = {i: float(r[name]) for i, r in enumerate(rows)}
        got = shown.get(f"epoch_{name}", {})
        same = got.keys() == wanted.keys() and all(np.isclose(got[i], wanted[i], rtol=1e-6) for i in wanted)
        check(f"TensorBoard shows epoch_{name}", same, f"{got} {wanted}")


def keras_network():
    return keras.applications.EfficientNetB0(weights=None, classes=SPECIES, input_shape=(SIDE, SIDE, 3))


def test_set(files):
    spec = {"image": tf.io.FixedLenFeature([], tf.string), "id": tf.io.FixedLenFeature([], tf.string)}
    examples = [tf.io.parse_single_example(r, spec) for r in tf.data.TFRecordDataset(files)]
    pixels = [tf.image.resize(tf.cast(tf.io.decode_jpeg(e["image"], channels=3), tf.float32), [SIDE, SIDE]) for e in examples]
    return [e["id"].numpy().decode() for e in examples], np.stack(pixels)


def predictions_agree(run, flowers, folder):
    files = sorted(str(p) for p in (flowers / "test").glob("*.tfrec"))
    ids, pixels = test_set(files)
    call(TEPAL, "predict", run, "--data", flowers / "test/*.tfrec", "--probabilities", "--out", folder / "p.csv")
    with open(folder / "p.csv") as f:
        rows = list(csv.reader(f))
    check("predict: header", rows[0] == ["id"] + [str(c) for c in range(SPECIES)], rows[0])
    check("predict: ids in the records' order", [r[0] for r in rows[1:]] == ids)
    ours = np.array([[float(v) for v in r[1:]] for r in rows[1:]], "float32")
    model = keras_network()
    model.load_weights(run / "best.h5")
    close("Keras answers with best.h5 as predict does, from the JPEGs on", ours, model.predict(pixels, verbose=0), 1e-5)
    call(TEPAL, "predict", run, "--data", flowers / "test/*.tfrec", "--out", folder / "s.csv")
    with open(folder / "s.csv") as f:
        labels = [int(r["label"]) for r in csv.DictReader(f)]
    check("predict: labels are the largest probabilities", labels == list(np.argmax(ours, axis=1)))


def checkpoint_is_readable(run):
    with safetensors.safe_open(run / "best.safetensors", "numpy") as f, h5py.File(run / "best.h5") as h5:
        metadata = json.loads(f.metadata()["tepal"])
        check("checkpoint: metadata is JSON with the labels", len(metadata["labels"]) == SPECIES, metadata.keys())
        stored = {n.decode() for layer in h5.attrs["layer_names"] for n in h5[layer].attrs["weight_names"]}
        names = [n for n in f.keys() if not n.startswith("normalization/")]
        same = True
        for name in names:
            layer, variable = name.split("/")
            if "dwconv" in layer and variable == "kernel":
                variable = "depthwise_kernel"
            path = f"{layer}/{variable}:0"
            same &= path in stored and np.array_equal(h5[layer][path][()], f.get_tensor(name))
        check("checkpoint: best.safetensors and best.h5 hold the same", same and len(names) > 300, len(names))


def main(folder):
    flowers, run = folder / "flowers", folder / "run"
    call(TEPAL, "draw", "--out", flowers, "--species", SPECIES, "--train", 8, "--val", 4, "--test", 4, "--size", 80)
    call(TEPAL, "train", "--train", flowers / "train/*.tfrec", "--val", flowers / "val/*.tfrec", "--labels",
         flowers / "labels.txt", "--weights", "none", "--image-size", SIDE, "--batch", 8, "--epochs", 2,
         "--fine-tune-epochs", 1, "--fine-tune-learning-rate", 1e-3, "--run", run)
    history_is_shown(run, 3)
    predictions_agree(run, flowers, folder)
    checkpoint_is_readable(run)


with tempfile.TemporaryDirectory() as temporary:
    main(Path(temporary))
end()
