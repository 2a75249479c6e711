#!/usr/bin/env python3
"""Runs the published EfficientNet-Lite0 weights with TensorFlow's "same" padding and compares with PyTorch's logits.

    python tests/ref/lite0_forward.py efficientnet-lite0-57934424.pth ../shared/data/lite0/lite0_224.npz

Shows that nets_lite.c's reading of the network (padding, epsilon, ReLU6, layer order) is that of the published file; TensorFlow
is used for the operators only. Prints the largest difference of the logits, for "same" and, to see that it would be noticed,
for symmetric padding.
"""
import collections
import os
import pickle
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

STAGES = [(3, 1, 16, 1, 1), (3, 2, 24, 6, 2), (5, 2, 40, 6, 2), (3, 3, 80, 6, 2), (5, 3, 112, 6, 1), (5, 4, 192, 6, 2),
          (3, 1, 320, 6, 1)]


def read_pth(path):
    """The older, unzipped format: magic, protocol, system info, the dictionary, storage keys, storages."""
    kinds = {"FloatStorage": "<f4", "LongStorage": "<i8"}

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            if name == "OrderedDict":
                return collections.OrderedDict
            if name == "_rebuild_tensor_v2":
                return lambda storage, offset, size, stride, *rest: (storage, offset, size, stride)
            if name in kinds:
                return name
            raise pickle.UnpicklingError(f"{module}.{name}")

        def persistent_load(self, pid):
            return pid[2], pid[1]

    with open(path, "rb") as file:
        for _ in range(3):
            Reader(file).load()
        tensors = Reader(file).load()
        keys = Reader(file).load()
        kind_of = {storage[0]: storage[1] for storage, *_ in tensors.values()}
        data = {}
        for key in keys:
            count = int(np.frombuffer(file.read(8), "<i8")[0])
            dtype = np.dtype(kinds[kind_of[key]])
            data[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    return {name: strided(data[storage[0]][offset:], size, stride) for name, (storage, offset, size, stride) in tensors.items()}


def strided(flat, size, stride):
    view = np.lib.stride_tricks.as_strided(flat, size, [s * flat.itemsize for s in stride])
    return np.ascontiguousarray(view)


def forward(w, x, same):
    def conv(x, name, stride=1, depthwise=False):
        k = w[name + ".weight"]
        if not same and k.shape[2] > 1:
            p = k.shape[2] // 2
            x = tf.pad(x, [[0, 0], [p, p], [p, p], [0, 0]])
        padding = "SAME" if same else "VALID"
        if depthwise:
            return tf.nn.depthwise_conv2d(x, k.transpose(2, 3, 0, 1), [1, stride, stride, 1], padding)
        return tf.nn.conv2d(x, k.transpose(2, 3, 1, 0), stride, padding)

    def bn(x, name):
        v = [w[name + s] for s in (".weight", ".bias", ".running_mean", ".running_var")]
        return (x - v[2]) * (v[0] / np.sqrt(v[3] + 1e-3)) + v[1]

    x = tf.nn.relu6(bn(conv(x, "_conv_stem", 2), "_bn0"))
    index = 0
    for _, repeats, filters, expand, stride in STAGES:
        for j in range(repeats):
            name, s, inputs = f"_blocks.{index}.", stride if j == 0 else 1, x
            if expand != 1:
                x = tf.nn.relu6(bn(conv(x, name + "_expand_conv"), name + "_bn0"))
            x = tf.nn.relu6(bn(conv(x, name + "_depthwise_conv", s, True), name + "_bn1"))
            x = bn(conv(x, name + "_project_conv"), name + "_bn2")
            if s == 1 and inputs.shape[-1] == filters:
                x = x + inputs
            index += 1
    x = tf.reduce_mean(tf.nn.relu6(bn(conv(x, "_conv_head"), "_bn1")), [1, 2])
    return (x @ w["_fc.weight"].T + w["_fc.bias"]).numpy()


weights = read_pth(sys.argv[1])
wanted = np.load(sys.argv[2])
for same in (True, False):
    logits = forward(weights, wanted["x"].transpose(0, 2, 3, 1), same)
    print("same" if same else "symmetric", np.abs(logits - wanted["logits"]).max(), "of", np.abs(wanted["logits"]).max())
