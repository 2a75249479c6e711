"""Weight files between tepal, Keras, h5py and safetensors, both ways. Usage: weights.py WEIGHTS_TOOL

Prints a line per check and exits with 1 when one fails. Needs keras (3.15), tensorflow, h5py, safetensors.
WEIGHTS_TOOL is the build's tests/model/weights_tool, which reads and writes with tepal's own functions.
"""

import io
import os
import subprocess
import sys
import tempfile
import zipfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import h5py
import keras
import numpy as np
import safetensors.numpy
from keras.src.legacy.saving import legacy_h5_format

TOOL = sys.argv[1]
failed = 0


def check(name, good, detail=""):
    global failed
    failed += not good
    print(("ok      " if good else "FAILED  ") + name + (f" ({detail})" if detail and not good else ""), flush=True)


def tool(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True)


def checksum(array):
    """FNV-1a over the bytes, as weights_tool prints it."""
    sum_ = 14695981039346656037
    for byte in array.tobytes():
        sum_ = (sum_ ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return f"{sum_:016x}"


def variables(model):
    """layer/variable -> array, over all layers, nested ones too."""
    return {"/".join(v.path.split("/")[-2:]): v.numpy() for v in model.weights if "seed_generator" not in v.path}


def difference(model, arrays):
    wanted = variables(model)
    names = wanted.keys() ^ arrays.keys()
    other = [n for n in wanted.keys() & arrays.keys() if not np.array_equal(wanted[n], arrays[n], equal_nan=True)]
    return "" if not names and not other else f"{len(names)} names, {len(other)} arrays differ: {sorted(names | set(other))[:3]}"


def make_flat(classes=None):
    keras.backend.clear_session()  # layers without a name of their own are numbered from the start again
    keras.utils.set_random_seed(3)
    model = keras.applications.EfficientNetB0(weights=None, include_top=classes is not None, classes=classes or 1000,
                                              input_shape=(64, 64, 3))
    for v in model.weights:  # moving statistics, biases: nothing may be all zeros or ones
        if "seed" not in v.path and "kernel" not in v.path and v.dtype == "float32":
            v.assign(np.random.default_rng(len(v.path)).normal(1, 0.1, v.shape).astype("float32"))
    return model


def make_nested():
    base = make_flat()
    base.trainable = False
    model = keras.Sequential([base, keras.layers.GlobalAveragePooling2D(name="gap"), keras.layers.Dropout(0.2),
                              keras.layers.Dense(104, name="head")])
    model.compile("adam", "mse")
    model.fit(np.zeros((2, 64, 64, 3)), np.zeros((2, 104)), verbose=0)
    return model


def keras_files_are_read(folder):
    for kind, model in (("flat", make_flat(104)), ("nested", make_nested())):
        for suffix in (".weights.h5", ".keras", ".h5"):
            path, out = f"{folder}/{kind}{suffix}", f"{folder}/{kind}.safetensors"
            model.save_weights(path) if suffix == ".weights.h5" else model.save(path)
            run = tool("copy", path, out)
            detail = run.stderr if run.returncode else difference(model, safetensors.numpy.load_file(out))
            check(f"read: Keras 3's {kind}{suffix}", detail == "", detail)


def nameless_files_are_read(folder):
    """As the first releases of Keras 3 wrote them: without the attribute `name`, which config.json makes up for."""
    for kind, model in (("flat", make_flat(104)), ("nested", make_nested())):
        path, out = f"{folder}/{kind}.keras", f"{folder}/{kind}.safetensors"
        model.save(path)
        with zipfile.ZipFile(path) as z:
            members = {n: z.read(n) for n in z.namelist()}
        h5 = io.BytesIO(members["model.weights.h5"])
        with h5py.File(h5, "r+") as f:
            f.visititems(lambda _, item: item.attrs.pop("name", None) and None)
        members["model.weights.h5"] = h5.getvalue()
        with zipfile.ZipFile(path, "w") as z:
            for n, data in members.items():
                z.writestr(n, data)
        run = tool("copy", path, out)
        detail = run.stderr if run.returncode else difference(model, safetensors.numpy.load_file(out))
        check(f"read: {kind}.keras without names in the .h5", detail == "", detail)


def our_h5_is_loaded(folder):
    model = make_flat(104)
    model.save_weights(f"{folder}/a.weights.h5")
    layers = [layer.name for layer in model.layers]
    with open(f"{folder}/layers.txt", "w") as f:
        f.write("\n".join(layers) + "\n")
    run = tool("copy", f"{folder}/a.weights.h5", f"{folder}/ours.h5", f"{folder}/layers.txt")
    check("write: .h5", run.returncode == 0, run.stderr)
    with h5py.File(f"{folder}/ours.h5") as f:
        check("h5py: layer_names are the model's", [n.decode() for n in f.attrs["layer_names"]] == layers)
        check("h5py: backend, keras_version", f.attrs["backend"] == b"tensorflow" and f.attrs["keras_version"][:2] == b"2.")
        check("h5py: a layer without weights has an empty float64 list",
              f["input_layer" if "input_layer" in f else layers[0]].attrs["weight_names"].dtype == np.float64)
        check("h5py: depthwise kernels have Keras 2's name",
              [n.decode() for n in f["block1a_dwconv"].attrs["weight_names"]] == ["block1a_dwconv/depthwise_kernel:0"])
        check("h5py: top_level_model_weights", "top_level_model_weights" in f)
    with open(f"{folder}/ours.h5", "rb") as f:
        check("HDF5: superblock 0", f.read(9)[8] == 0)
    for by_name in (False, True):
        other = make_flat(104)
        for v in other.weights:
            v.assign(v * 0)
        other.load_weights(f"{folder}/ours.h5", **({"by_name": True} if by_name else {}))
        detail = difference(model, variables(other))
        check(f"Keras loads our .h5 {'by name' if by_name else 'in order'}", detail == "", detail)


def our_safetensors_are_loaded(folder):
    arrays = {"a/kernel": np.arange(24, dtype="float32").reshape(2, 3, 4), "b/count": np.array(5, "int64"),
              "c": np.arange(5, dtype="uint8"), "d": np.linspace(0, 1, 7).astype("float16"), "e": np.zeros((0, 3), "float64"),
              "f": np.array([[1, -1]], "int32"), "g": np.array([2**32 - 1], "uint32")}
    safetensors.numpy.save_file(arrays, f"{folder}/theirs.safetensors", {"k": "v"})
    run = tool("list", f"{folder}/theirs.safetensors")
    listed = {line.split(" ")[0]: line.split(" ")[-1] for line in run.stdout.splitlines()}
    check("read: the safetensors package's file", listed == {n: checksum(a) for n, a in arrays.items()}, run.stderr)
    run = tool("copy", f"{folder}/theirs.safetensors", f"{folder}/ours.safetensors")
    check("write: .safetensors", run.returncode == 0, run.stderr)
    back = safetensors.numpy.load_file(f"{folder}/ours.safetensors")
    check("the safetensors package loads our file", back.keys() == arrays.keys()
          and all(np.array_equal(back[n], a) and back[n].dtype == a.dtype for n, a in arrays.items()))
    with safetensors.safe_open(f"{folder}/ours.safetensors", "numpy") as f:
        check("our metadata", f.metadata() == {"writer": "tepal"})


def long_lists(folder):
    names = [f"a_layer_with_a_name_that_is_really_rather_long_number_{i:06d}" for i in range(2000)]
    safetensors.numpy.save_file({n + "/kernel": np.full(1, i, "float32") for i, n in enumerate(names)},
                                f"{folder}/long.safetensors")
    run = tool("copy", f"{folder}/long.safetensors", f"{folder}/long.h5")
    check("write: 2000 layers with names of 60 characters", run.returncode == 0, run.stderr)
    with h5py.File(f"{folder}/long.h5") as f:
        read = legacy_h5_format.load_attributes_from_hdf5_group(f, "layer_names")
        check("Keras reads the split layer_names", sorted(read) == names and "layer_names1" in f.attrs)
    with h5py.File(f"{folder}/keras_long.h5", "w") as f:
        legacy_h5_format.save_attributes_to_hdf5_group(f, "layer_names", [n.encode() for n in names])
        for i, n in enumerate(names):
            g = f.create_group(n)
            legacy_h5_format.save_attributes_to_hdf5_group(g, "weight_names", [f"{n}/kernel:0".encode()])
            g[f"{n}/kernel:0"] = np.full(1, i, "float32")
    run = tool("list", f"{folder}/keras_long.h5")
    check("read: layer_names split by Keras", [line.split("/")[0] for line in run.stdout.splitlines()] == names, run.stderr)


def torch_files_are_read(folder):
    try:
        import torch
    except ImportError:
        print("skipped  PyTorch's files (no torch)")
        return
    w = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    state = {"a": w, "transposed": w.t(), "row": w[1], "half": w.half(), "bf16": w.bfloat16(), "n": torch.tensor(7),
             "p": torch.nn.Parameter(w + 1)}
    for new in (True, False):
        torch.save({"epoch": 3, "state_dict": state}, f"{folder}/x.pth", _use_new_zipfile_serialization=new)
        run = tool("list", f"{folder}/x.pth")
        listed = {line.split(" ")[0]: line.split(" ")[-1] for line in run.stdout.splitlines()}
        plain = {n: t.detach().contiguous().view(torch.int16 if t.dtype == torch.bfloat16 else t.dtype).numpy()
                 for n, t in state.items()}
        check(f"read: torch.save, {'zip' if new else 'older form'}", listed == {n: checksum(a) for n, a in plain.items()},
              run.stderr)


with tempfile.TemporaryDirectory() as folder_:
    for part in (keras_files_are_read, nameless_files_are_read, our_h5_is_loaded, our_safetensors_are_loaded, long_lists, torch_files_are_read):
        part(folder_)
print(f"{failed} failed" if failed else "all passed")
sys.exit(failed > 0)
