#!/usr/bin/env python3
"""Writes what Keras says about its networks, for tests/model/test_net_keras.c, test_net.c and test_net_summary.c.

    python tests/ref/keras_layers.py tests/fixtures        (Keras 3.15.1, TensorFlow 2.21)

keras_layers.txt.gz: one line for each layer, sections headed by "model NAME HEIGHT WIDTH CLASSES DROPOUT WIDTH_COEFFICIENT
DEPTH_COEFFICIENT OFFICIAL" (coefficients 0: the network's own); a layer is "name class output_shape params inbound,inbound".
keras_summary_b0.txt.gz: model.summary(line_length=100) of B0, 192x192, 104 classes.
"""
import gzip
import io
import os
import sys
from unittest import mock

os.environ["COLUMNS"] = "100"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras  # noqa: E402
from keras.src.applications import efficientnet  # noqa: E402

# Name: Keras' function, and whether its head has dropout.
NETWORKS = {f"efficientnet-b{i}": (f"EfficientNetB{i}", True) for i in range(8)} | {
    "mobilenet-v2": ("MobileNetV2", False),
    "resnet50": ("ResNet50", False),
    "resnet50-v2": ("ResNet50V2", False),
    "densenet121": ("DenseNet121", False),
    "densenet169": ("DenseNet169", False),
    "densenet201": ("DenseNet201", False),
}


def build(name, height, width, classes, dropout, width_coefficient, depth_coefficient, official):
    keras.backend.clear_session()
    options = dict(include_top=classes > 0, input_shape=(height, width, 3), name=name)
    if classes:
        options["classes"] = classes
    function, has_dropout = NETWORKS[name]
    if not width_coefficient:
        model = getattr(keras.applications, function)(weights=None, **options)
        rates = [layer.rate for layer in model.layers if layer.name == "top_dropout"]
        assert rates == [dropout] * (has_dropout and classes > 0), rates
        return model
    # the graph of weights="imagenet" without the file; it wants 1000 classes or none
    with mock.patch("keras.src.utils.file_utils.get_file", return_value="none"), \
            mock.patch("keras.src.models.Functional.load_weights"):
        return efficientnet.EfficientNet(
            width_coefficient, depth_coefficient, 224, dropout, weights="imagenet" if official else None,
            weights_name="b0", **options)


def layer_line(layer):
    shape = layer.output.shape
    inbound = [t._keras_history.operation.name for n in layer._inbound_nodes for t in n.input_tensors]
    text = ",".join("N" if d is None else str(d) for d in shape)
    return f"{layer.name} {type(layer).__name__} {text} {layer.count_params()} {','.join(inbound) or '-'}\n"


def write_gz(path, text):
    with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:
        out.write(text.encode())


def main(folder):
    b0 = ("efficientnet-b0", 192, 192, 104, 0.2, 1.0, 1.0, 0)
    models = [
        b0,
        ("efficientnet-b0", 193, 161, 0, 0.2, 0.25, 0.4, 0),
        ("efficientnet-b0", 64, 50, 0, 0.2, 1.1, 1.2, 1),
        ("efficientnet-b0", 224, 224, 1000, 0.2, 0, 0, 0),
        ("efficientnet-b1", 240, 240, 1000, 0.2, 0, 0, 0),
        ("efficientnet-b2", 260, 260, 1000, 0.3, 0, 0, 0),
        ("efficientnet-b2", 65, 97, 0, 0.3, 1.1, 1.2, 1),
        ("efficientnet-b3", 300, 300, 1000, 0.3, 0, 0, 0),
        ("efficientnet-b4", 380, 380, 1000, 0.4, 0, 0, 0),
        ("efficientnet-b5", 456, 456, 1000, 0.4, 0, 0, 0),
        ("efficientnet-b6", 528, 528, 1000, 0.5, 0, 0, 0),
        ("efficientnet-b7", 600, 600, 1000, 0.5, 0, 0, 0),
        ("mobilenet-v2", 224, 224, 1000, 0, 0, 0, 0),
        ("mobilenet-v2", 65, 97, 0, 0, 0, 0, 0),
        ("resnet50", 224, 224, 1000, 0, 0, 0, 0),
        ("resnet50", 65, 97, 0, 0, 0, 0, 0),
        ("resnet50-v2", 224, 224, 1000, 0, 0, 0, 0),
        ("resnet50-v2", 65, 97, 0, 0, 0, 0, 0),
        ("densenet121", 224, 224, 1000, 0, 0, 0, 0),
        ("densenet121", 65, 97, 0, 0, 0, 0, 0),
        ("densenet169", 224, 224, 1000, 0, 0, 0, 0),
        ("densenet201", 224, 224, 1000, 0, 0, 0, 0),
    ]
    text = ""
    for model in models:
        text += "model " + " ".join(str(v) for v in model) + "\n"
        text += "".join(layer_line(layer) for layer in build(*model).layers)
    write_gz(os.path.join(folder, "keras_layers.txt.gz"), text)
    lines = io.StringIO()
    build(*b0).summary(line_length=100, print_fn=lambda s: lines.write(s + "\n"))
    write_gz(os.path.join(folder, "keras_summary_b0.txt.gz"), lines.getvalue().rstrip("\n") + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
