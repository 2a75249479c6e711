"""Prints the tables of tests/train/test_schedule.c and test_optimizer.c, made by Keras 3.

    python tests/ref/train_ref.py
"""
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

S = keras.optimizers.schedules


def numbers(values):
    return ", ".join(f"{float(v):.9g}f" for v in values)


def schedules():
    cases = [
        ("exponential staircase", S.ExponentialDecay(1e-3, 100, 0.96, staircase=True)),
        ("exponential smooth", S.ExponentialDecay(1e-3, 100, 0.96, staircase=False)),
        ("cosine", S.CosineDecay(1e-3, 1000, alpha=0.1)),
        ("cosine with warm-up", S.CosineDecay(0.0, 1000, alpha=0.0, warmup_target=1e-3, warmup_steps=100)),
        ("piecewise", S.PiecewiseConstantDecay([99, 250], [1e-3, 5e-4, 1e-4])),
    ]
    steps = [0, 1, 50, 99, 100, 101, 250, 251, 1050, 5000]
    print("steps:", steps)
    for name, schedule in cases:
        print(f"/* {name} */ {{{numbers(schedule(s) for s in steps)}}}")


# Gradients of three numbers at each of five steps: exact in binary, of very different sizes.
GRADIENTS = np.array(
    [[0.5, -2.0, 0.0], [0.25, 1.0, 2.0**-20], [-0.125, 3.0, 2.0**-20], [0.5, -4.0, 0.0], [1.0, 0.5, -(2.0**-18)]],
    "float32",
)
START = np.array([1.0, -1.0, 0.5], "float32")


def optimizers():
    cases = [
        ("adam", keras.optimizers.Adam(1e-2)),
        ("adam, other betas", keras.optimizers.Adam(1e-2, beta_1=0.5, beta_2=0.9, epsilon=1e-3)),
        ("sgd", keras.optimizers.SGD(1e-2)),
        ("sgd, momentum", keras.optimizers.SGD(1e-2, momentum=0.9)),
        ("sgd, nesterov", keras.optimizers.SGD(1e-2, momentum=0.9, nesterov=True)),
        ("adam, weight decay", keras.optimizers.AdamW(1e-2, weight_decay=0.5)),
        ("sgd, weight decay", keras.optimizers.SGD(1e-2, momentum=0.9, weight_decay=0.5)),
        ("sgd, nesterov, weight decay", keras.optimizers.SGD(1e-2, momentum=0.9, nesterov=True, weight_decay=0.5)),
        ("adam, clipped", keras.optimizers.Adam(1e-2, global_clipnorm=0.75)),
        ("sgd, clipped", keras.optimizers.SGD(1e-2, momentum=0.9, global_clipnorm=0.75)),
        ("sgd, all of it", keras.optimizers.SGD(
            1e-2, momentum=0.9, weight_decay=0.5, global_clipnorm=2.0, use_ema=True, ema_momentum=0.75)),
    ]
    for name, optimizer in cases:
        v = keras.Variable(START, name="v")
        optimizer.build([v])
        print(f"/* {name} */")
        for g in GRADIENTS:
            optimizer.apply([keras.ops.convert_to_tensor(g)], [v])
            print(f"{{{numbers(np.array(v))}}},")
        if optimizer.use_ema:
            print(f"/* averaged */ {{{numbers(np.array(optimizer._model_variables_moving_average[0]))}}}")


print("Keras", keras.__version__)
schedules()
optimizers()
