#!/usr/bin/env python3
"""Writes what every layer of Keras' networks gives, for tests/model/test_net_blocks.c.

    python tests/ref/keras_blocks.py tests/fixtures        (Keras 3.15.1, TensorFlow 2.21)

Weights and pixels are functions of names and positions (`draw`), so that the test makes the same ones and the file holds
only samples: keras_blocks.txt.gz has sections headed by "model NAME HEIGHT WIDTH CLASSES", and in each a line per layer:
"layer largest sample...", the largest absolute value of its output and SAMPLES values at positions drawn by its name.
The pixels go through the network's own preprocess_input first.
"""
import os
import sys

import numpy as np

from keras_layers import NETWORKS, keras, write_gz

SAMPLES = 4
MODELS = [("efficientnet-b0", 65, 97), ("efficientnet-b1", 64, 64), ("efficientnet-b2", 65, 97), ("efficientnet-b3", 64, 64),
          ("efficientnet-b4", 65, 97), ("efficientnet-b5", 64, 64), ("efficientnet-b6", 64, 64), ("efficientnet-b7", 65, 97),
          ("mobilenet-v2", 64, 64), ("mobilenet-v2", 65, 97), ("resnet50", 64, 64), ("resnet50", 65, 97),
          ("resnet50-v2", 64, 64), ("resnet50-v2", 65, 97), ("densenet121", 64, 64), ("densenet169", 65, 97),
          ("densenet201", 65, 97)]
CLASSES = 5
PREPARE = {
    "mobilenet-v2": keras.applications.mobilenet_v2, "resnet50": keras.applications.resnet,
    "resnet50-v2": keras.applications.resnet_v2, "densenet121": keras.applications.densenet,
    "densenet169": keras.applications.densenet, "densenet201": keras.applications.densenet,
}


def draw(name, n):
    """n 32-bit numbers: murmur3's finalizer over FNV-1a of the name plus multiples of the golden ratio."""
    h = 0x811C9DC5
    for c in name.encode():
        h = (h ^ c) * 0x01000193 & 0xFFFFFFFF
    with np.errstate(over="ignore"):
        x = np.uint32(h) + np.arange(n, dtype=np.uint32) * np.uint32(0x9E3779B9)
        x = (x ^ x >> np.uint32(16)) * np.uint32(0x85EBCA6B)
        x = (x ^ x >> np.uint32(13)) * np.uint32(0xC2B2AE35)
        return x ^ x >> np.uint32(16)


def limits(variable, shape):
    """The range of a variable's values: such that the values of each layer keep the size of the one before."""
    if variable == "kernel":
        fan_in = np.prod(shape[:2]) * (shape[2] if shape[3] > 1 else 1) if len(shape) == 4 else shape[0]
        limit = float(np.sqrt((4.0 if len(shape) == 4 else 0.16) / fan_in))  # probabilities that don't saturate
        return -limit, limit
    return {"gamma": (0.5, 1.5), "beta": (-0.2, 0.2), "moving_mean": (-0.2, 0.2), "moving_variance": (0.5, 1.5),
            "bias": (-0.2, 0.2), "mean": (0.3, 0.6), "variance": (0.04, 0.06), "count": (0, 0)}[variable]


def values(network, name, shape):
    low, high = limits(name.split("/")[1], shape)
    if network == "resnet50" and name == "conv1_conv/kernel":  # its pixels are hundreds, where others' are ones
        low, high = low / 64, high / 64
    unit = draw(name, int(np.prod(shape))) / 2.0**32
    return (low + (high - low) * unit).astype("float32").reshape(shape)


def section(name, height, width):
    keras.backend.clear_session()
    model = getattr(keras.applications, NETWORKS[name][0])(
        weights=None, classes=CLASSES, input_shape=(height, width, 3), name=name)
    for layer in model.layers:
        new = [values(name, f"{layer.name}/{v.name}", v.shape) for v in layer.weights if "seed" not in v.path]
        if new:
            layer.set_weights(new)
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()
    pixels = (draw("pixels", height * width * 3) >> 24).astype("float32").reshape(1, height, width, 3)
    if name in PREPARE:
        pixels = PREPARE[name].preprocess_input(pixels)
    whole = keras.Model(model.input, [layer.output for layer in model.layers])
    text = f"model {name} {height} {width} {CLASSES}\n"
    for layer, out in zip(model.layers, whole(pixels, training=False)):
        out = np.asarray(out).ravel()
        at = draw(layer.name, SAMPLES) % out.size
        text += f"{layer.name} {np.max(np.abs(out)):.6g} " + " ".join(f"{v:.6g}" for v in out[at]) + "\n"
    last = np.asarray(out)
    print(f"{name} {height}x{width}: probabilities {last.min():.3g} to {last.max():.3g}", flush=True)
    return text


def main(folder):
    write_gz(os.path.join(folder, "keras_blocks.txt.gz"), "".join(section(*model) for model in MODELS))


if __name__ == "__main__":
    main(sys.argv[1])
