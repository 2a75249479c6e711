"""A network that Keras saved gives the same probabilities in tepal, and one that tepal saved the same in Keras.

    check_models.py MODEL_TOOL       (tests/interop/model_tool: public functions of tepal.h only)
"""
import sys
import tempfile
from pathlib import Path

from checking import call, check, close, end

import keras
import numpy as np
import safetensors.numpy

TOOL = sys.argv[1]
SIZE, CLASSES, COUNT = 64, 10, 6


def make(seed):
    """EfficientNetB0 as Keras builds it, with statistics and biases that are not all zeros and ones."""
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    model = keras.applications.EfficientNetB0(weights=None, classes=CLASSES, input_shape=(SIZE, SIZE, 3))
    rng = np.random.default_rng(seed)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            n = layer.gamma.shape
            layer.set_weights([rng.uniform(0.5, 1.5, n), rng.normal(0, 0.2, n), rng.normal(0, 0.2, n), rng.uniform(0.5, 1.5, n)])
        elif isinstance(layer, keras.layers.Normalization):
            layer.set_weights([np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225]), np.array(0)])
            layer.finalize_state()  # what the layer computes with; set_weights alone does not reach it
        elif getattr(layer, "use_bias", False):
            kernel, bias = layer.get_weights()
            layer.set_weights([kernel, rng.normal(0, 0.2, bias.shape)])
    return model


def ours(folder, weights, pixels, save=(), network="efficientnet-b0"):
    pixels.tofile(folder / "pixels.f32")
    call(TOOL, network, SIZE, SIZE, CLASSES, weights, folder / "pixels.f32", folder / "answers.f32", *save)
    return np.fromfile(folder / "answers.f32", "float32").reshape(-1, CLASSES)


def main(folder):
    model, other = make(3), make(4)
    # Plain colours with some noise: pictures that a random network tells apart.
    rng = np.random.default_rng(1)
    pixels = np.clip(rng.uniform(0, 255, (COUNT, 1, 1, 3)) + rng.normal(0, 40, (COUNT, SIZE, SIZE, 3)), 0, 255).astype("float32")
    theirs = model.predict(pixels, verbose=0)
    check("the answers differ from picture to picture", np.max(np.ptp(theirs, axis=0)) > 1e-3, np.ptp(theirs, axis=0))
    for suffix in (".keras", ".weights.h5", ".h5"):
        path = folder / f"model{suffix}"
        model.save_weights(path) if suffix == ".weights.h5" else model.save(path)
        close(f"Keras' {suffix} answers alike in tepal", ours(folder, path, pixels), theirs, 1e-5)
    h5, tensors = folder / "ours.h5", folder / "ours.safetensors"
    ours(folder, folder / "model.keras", pixels, [h5])
    other.load_weights(h5)
    close("tepal's .h5 answers alike in Keras", other.predict(pixels, verbose=0), theirs, 1e-6)
    ours(folder, folder / "model.keras", pixels, [tensors])
    read = safetensors.numpy.load_file(tensors)
    wanted = {"/".join(v.path.split("/")[-2:]): v.numpy() for v in model.weights if "seed" not in v.path}
    check("tepal's .safetensors has Keras' names", read.keys() == wanted.keys(), sorted(read.keys() ^ wanted.keys())[:4])
    check("tepal's .safetensors has Keras' values", all(np.array_equal(read[n], wanted[n]) for n in read.keys() & wanted.keys()))
    close("tepal's .safetensors answers alike in tepal", ours(folder, tensors, pixels), theirs, 1e-5)


OTHERS = [("mobilenet-v2", "MobileNetV2", keras.applications.mobilenet_v2),
          ("resnet50", "ResNet50", keras.applications.resnet),
          ("resnet50-v2", "ResNet50V2", keras.applications.resnet_v2),
          ("densenet121", "DenseNet121", keras.applications.densenet)]


def others(folder):
    """Networks whose pixels Keras prepares outside: there and back."""
    pixels = np.random.default_rng(2).uniform(0, 255, (COUNT, SIZE, SIZE, 3)).astype("float32")
    for network, function, module in OTHERS:
        model, other = (make_other(function, seed) for seed in (5, 6))
        prepared = module.preprocess_input(pixels.copy())
        theirs = model.predict(prepared, verbose=0)
        model.save_weights(folder / "other.weights.h5")
        h5 = folder / f"{network}.h5"
        close(f"Keras' {function} answers alike in tepal",
              ours(folder, folder / "other.weights.h5", pixels, [h5], network), theirs, 1e-5)
        other.load_weights(h5)
        close(f"tepal's {network} answers alike in Keras", other.predict(prepared, verbose=0), theirs, 1e-6)


def make_other(function, seed):
    keras.backend.clear_session()
    keras.utils.set_random_seed(seed)
    return getattr(keras.applications, function)(weights=None, classes=CLASSES, input_shape=(SIZE, SIZE, 3))


with tempfile.TemporaryDirectory() as temporary:
    main(Path(temporary))
    others(Path(temporary))
end()
