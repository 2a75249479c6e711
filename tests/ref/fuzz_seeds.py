"""Writes tests/fuzz/seeds: small whole files for the fuzz targets to change. Run from the top folder, with h5py and torch.

h5: Keras' legacy layout with fixed and with variable strings, and Keras 3's; pth: torch.save, zip and older form;
safetensors: a few types; example: a labelled record's payload; tfrecord: two records, plain and gzip.
"""
import gzip
import io
import json
import struct
from pathlib import Path

import h5py
import numpy as np
import torch

SEEDS = Path("tests/fuzz/seeds")


def legacy(strings, nested):
    memory = io.BytesIO()
    with h5py.File(memory, "w", libver="earliest") as f:
        top = f.create_group("model_weights") if nested else f
        top.attrs["layer_names"] = np.array(["input_1", "head"], dtype=strings)
        top.create_group("input_1").attrs["weight_names"] = np.zeros(0)
        head = top.create_group("head")
        head.attrs["weight_names"] = np.array(["head/kernel:0", "head/bias:0"], dtype=strings)
        head["head/kernel:0"] = np.arange(6, dtype="float32").reshape(2, 3)
        head["head/bias:0"] = np.arange(3, dtype="float32")
    return memory.getvalue()


def keras3():
    memory = io.BytesIO()
    with h5py.File(memory, "w", libver="earliest") as f:
        group = f.create_group("layers/dense/vars")
        group.attrs["name"] = "head"
        group["0"] = np.arange(6, dtype="float32").reshape(2, 3)
        group["1"] = np.arange(3, dtype="float32")
    return memory.getvalue()


def pth(zipped):
    memory = io.BytesIO()
    w = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    torch.save({"fc.weight": w, "t": w.t(), "n": torch.tensor(7)}, memory, _use_new_zipfile_serialization=zipped)
    return memory.getvalue()


def safetensors():
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, "__metadata__": {"k": "v"},
                         "b": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(16)


RECORD_3 = bytes.fromhex("0a200a0e0a05696d61676512050a030a01580a0e0a05636c61737312051a030a0167")
RECORDS = bytes.fromhex("0300000000000000b099490e6162636e57f1210500000000000000eab2043e64656667688055627d")

files = {
    "h5/legacy_fixed.h5": legacy("S16", False), "h5/legacy_variable.h5": legacy(h5py.string_dtype(), True), "h5/keras3.h5": keras3(),
    "pth/zip.pth": pth(True), "pth/older.pth": pth(False), "safetensors/two": safetensors(), "example/labelled": RECORD_3,
    "tfrecord/two": RECORDS, "tfrecord/gzip": gzip.compress(RECORDS, mtime=0),
}
for name, data in files.items():
    (SEEDS / name).parent.mkdir(parents=True, exist_ok=True)
    (SEEDS / name).write_bytes(data)
