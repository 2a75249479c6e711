"""Frozen training of EfficientNetB0 at 192x192, batch 32, in Keras as the notebook does it: prints a JSON line.

    keras_frozen.py [plain|xla] [DATA]       DATA/train/*.tfrec; without it, random pixels from memory

With DATA the input is the notebook's too: TFRecords, decode_jpeg, resize, flip, rotation. The median of the epochs
after the first counts.
"""
import json
import os
import statistics
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import numpy as np
import tensorflow as tf

SIZE, BATCH, CLASSES, STEPS, EPOCHS = 192, 32, 104, 8, 4
xla = "xla" in sys.argv[1:2]
data = sys.argv[2] if len(sys.argv) > 2 else None


def parse(record):
    e = tf.io.parse_single_example(record, {"image": tf.io.FixedLenFeature([], tf.string), "class": tf.io.FixedLenFeature([], tf.int64)})
    image = tf.image.resize(tf.cast(tf.io.decode_jpeg(e["image"], channels=3), tf.float32), [SIZE, SIZE])
    return image, e["class"]


def dataset():
    if data is None:
        pixels = np.random.default_rng(1).integers(0, 256, (BATCH, SIZE, SIZE, 3)).astype("float32")
        return tf.data.Dataset.from_tensors((pixels, np.arange(BATCH) % CLASSES)).repeat()
    files = tf.io.gfile.glob(data + "/train/*.tfrec")
    records = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)
    return records.repeat().shuffle(2048).map(parse, tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)


class Times(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.rates = []

    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.rates.append(STEPS * BATCH / (time.perf_counter() - self.start))


base = keras.applications.EfficientNetB0(weights=None, include_top=False, input_shape=(SIZE, SIZE, 3))
base.trainable = False
inputs = keras.Input((SIZE, SIZE, 3))
x = keras.layers.RandomFlip("horizontal")(inputs) if data else inputs
x = keras.layers.RandomRotation(0.1)(x) if data else x
x = keras.layers.GlobalAveragePooling2D()(base(x, training=False))
model = keras.Model(inputs, keras.layers.Dense(CLASSES, activation="softmax")(keras.layers.Dropout(0.2)(x)))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=xla)
times = Times()
model.fit(dataset(), epochs=EPOCHS, steps_per_epoch=STEPS, verbose=0, callbacks=[times])
print(json.dumps({"name": f"keras{'_xla' if xla else ''}_frozen_train_b0_192", "images_per_s": round(statistics.median(times.rates[1:]), 1),
                  "input": "tfrecords" if data else "memory", "version": keras.__version__}))
