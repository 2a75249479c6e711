"""Keras with TensorFlow: keras_peer.py fit|xla NAME...        DATA=DIR in the environment: DIR/train/*.tfrec

Training is model.fit, as people do it; xla: jit_compile. frozen_train reads TFRecords when DATA is set, with the notebook's
decoding, flip and rotation; the other kinds take random pixels from memory. input: tf.data with Keras' layers, without a model.
"""
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import measure
import numpy as np
import tensorflow as tf

how, data = sys.argv[1], os.environ.get("DATA")
NETWORKS = {"resnet50": "ResNet50", "densenet121": "DenseNet121", "mobilenet-v2": "MobileNetV2"}
STEPS = 2  # of an epoch of fit, whose overhead they share
tf.config.threading.set_intra_op_parallelism_threads(measure.threads())


def backbone(network, size):
    name = NETWORKS.get(network) or f"EfficientNet{network.upper()}"
    return getattr(keras.applications, name)(weights=None, include_top=False, input_shape=(size, size, 3))


def augmented(size):
    flip, rotate = keras.layers.RandomFlip("horizontal"), keras.layers.RandomRotation(0.1)

    def parse(record):
        features = {"image": tf.io.FixedLenFeature([], tf.string), "class": tf.io.FixedLenFeature([], tf.int64)}
        e = tf.io.parse_single_example(record, features)
        image = tf.cast(tf.io.decode_jpeg(e["image"], channels=3), tf.float32)
        return tf.image.resize(image, [size, size]), e["class"]

    def augment(images, labels):
        return rotate(flip(images, training=True), training=True), labels

    files = tf.io.gfile.glob(data + "/train/*.tfrec")
    records = tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE).repeat().shuffle(2048)
    batches = records.map(parse, tf.data.AUTOTUNE).batch(measure.BATCH, drop_remainder=True)
    return batches.map(augment, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def in_memory(size):
    pixels = np.random.default_rng(1).integers(0, 256, (measure.BATCH, size, size, 3)).astype("float32")
    return tf.data.Dataset.from_tensors((pixels, np.arange(measure.BATCH) % measure.CLASSES)).repeat()


def inference(network, size):
    base = backbone(network, size)
    outputs = keras.layers.Dense(measure.CLASSES, activation="softmax")(keras.layers.GlobalAveragePooling2D()(base.output))
    model = keras.Model(base.input, outputs)
    pixels = tf.random.uniform((measure.BATCH, size, size, 3), maxval=255)
    run = tf.function(lambda x: model(x, training=False), jit_compile=how == "xla")
    return measure.rate(lambda: run(pixels).numpy())


def training(kind, network, size):
    base = backbone(network, size)
    base.trainable = kind != "frozen_train"
    for layer in base.layers[:-20] if kind == "finetune" else []:
        layer.trainable = False
    inputs = keras.Input((size, size, 3))
    features = base(inputs, training=kind == "full_train")
    x = keras.layers.Dropout(0.2)(keras.layers.GlobalAveragePooling2D()(features))
    model = keras.Model(inputs, keras.layers.Dense(measure.CLASSES, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], jit_compile=how == "xla")
    batches = augmented(size) if kind == "frozen_train" and data else in_memory(size)
    model.fit(batches, epochs=1, steps_per_epoch=2, verbose=0)
    iterator = batches.__iter__()

    def epoch():
        model.fit(iter_dataset(iterator), epochs=1, steps_per_epoch=STEPS, verbose=0)

    return measure.rate(epoch, STEPS * measure.BATCH)


def iter_dataset(iterator):
    while True:
        yield next(iterator)


def input_alone(size):
    if not data:
        return None
    batches = iter(augmented(size))
    return measure.rate(lambda: next(batches)[0].numpy())


def one(kind, network, size):
    keras.backend.clear_session()
    if kind == "input":
        return input_alone(size) if how == "fit" else None
    return inference(network, size) if kind == "infer" else training(kind, network, size)


if __name__ == "__main__":
    sys.exit(measure.each(sys.argv[2:], one, f"keras {how}"))
