"""Writes tests/fixtures/image_ref.npz: what TensorFlow 2.21 and Keras 3.15 make of small synthetic pictures.

Read by tests/image/test_affine.c, test_resize.c, test_png.c and test_turn.c. Run from the top folder, with TensorFlow, Keras and Pillow.
"""
import io
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import keras
import numpy as np
import tensorflow as tf
from PIL import Image, ImageOps

rng = np.random.default_rng(7)
out = {}


def picture(h, w):
    return rng.integers(0, 256, (h, w, 3), dtype=np.uint8)


# ---- rotation by Keras' layer, fills in the order of tp__fill ----
fills = ["reflect", "constant", "nearest", "wrap"]
cases = []
for h, w in [(5, 7), (8, 8), (2, 9), (9, 2), (1, 6), (31, 20), (3, 90)]:
    im = picture(h, w)
    for f, fill in enumerate(fills):
        for turn in (0.13, -0.31, 0.5):
            for inter in ("bilinear", "nearest"):
                value = 77.0 if fill == "constant" else 0.0
                layer = keras.layers.RandomRotation((turn, turn), fill_mode=fill, fill_value=value, interpolation=inter, seed=1)
                y = np.array(layer(im.astype("float32")[None], training=True))[0]
                t = layer.get_random_transformation(tf.constant(im.astype("float32")[None]), training=True, seed=1)
                cases.append((im, np.array(t["rotation_matrix"])[0], f, value, inter == "bilinear", turn, y))
# any affine matrix, far outside
for fill in range(4):
    im = picture(6, 4)
    m = np.array([2.5, -1.75, -7.3, 0.9, 3.1, -12.4, 0, 0], "float32")
    y = tf.raw_ops.ImageProjectiveTransformV3(images=im.astype("float32")[None], transforms=m[None], output_shape=[6, 4],
                                              fill_value=9.0, interpolation="BILINEAR", fill_mode=fills[fill].upper()).numpy()[0]
    cases.append((im, m, fill, 9.0, True, np.nan, y))
# One array of each kind for all cases, pictures behind each other: a zip of hundreds of small files would be mostly names.
out["affine:size"] = np.array([c[0].shape[:2] for c in cases], "int32")
out["affine:in"] = np.concatenate([c[0].ravel() for c in cases])
out["affine:matrix"] = np.array([c[1] for c in cases], "float32")
out["affine:about"] = np.array([[fill, value, bilinear, turn] for _, _, fill, value, bilinear, turn, _ in cases], "float32")
out["affine:out"] = np.concatenate([c[6].astype("float32").ravel() for c in cases])

# ---- tf.image.resize ----
sizes = [((13, 9), (5, 4)), ((5, 4), (13, 9)), ((7, 7), (7, 7)), ((1, 1), (3, 2)), ((40, 3), (2, 3)), ((64, 48), (21, 33)), ((2, 50), (30, 1))]
out["resize:count"] = np.int32(len(sizes))
for k, ((h, w), to) in enumerate(sizes):
    im = picture(h, w)
    out[f"resize{k}:in"] = im
    out[f"resize{k}:plain"] = tf.image.resize(im.astype("float32"), to).numpy()
    out[f"resize{k}:antialias"] = tf.image.resize(im.astype("float32"), to, antialias=True).numpy()

# ---- PNG of every colour type, and what tf.io.decode_png(channels=3) gives ----
pngs = []


def pil(image, **options):
    b = io.BytesIO()
    image.save(b, "PNG", **options)
    pngs.append(b.getvalue())


grey = picture(6, 11)[..., 0]
pil(Image.fromarray(grey > 128))                                   # 1 bit
pil(Image.fromarray(grey))                                         # 8 bit grey
pil(Image.fromarray(picture(6, 11)).quantize(5))                   # palette, 4 bit
pil(Image.fromarray(picture(6, 11)).quantize(3), transparency=1)   # palette with a transparent colour, 2 bit
pil(Image.fromarray(picture(6, 11)), transparency=(1, 2, 3))       # RGB with a transparent colour
for channels in (1, 2, 3, 4):
    for kind in (np.uint8, np.uint16):
        pngs.append(tf.io.encode_png(rng.integers(0, np.iinfo(kind).max + 1, (5, 9, channels)).astype(kind)).numpy())
out["png:count"] = np.int32(len(pngs))
for k, p in enumerate(pngs):
    out[f"png{k}:file"] = np.frombuffer(p, "uint8")
    out[f"png{k}:rgb"] = tf.io.decode_png(p, channels=3).numpy()

# ---- EXIF orientations, by Pillow ----
im = picture(3, 5)
out["turn:in"] = im
for o in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = o
    b = io.BytesIO()
    Image.fromarray(im).save(b, "PNG", exif=exif)
    out[f"turn{o}:file"] = np.frombuffer(b.getvalue(), "uint8")
    out[f"turn{o}:rgb"] = np.array(ImageOps.exif_transpose(Image.open(b)).convert("RGB"))

np.savez_compressed("tests/fixtures/image_ref.npz", **out)
