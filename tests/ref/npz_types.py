"""Writes tests/fixtures/types.npz for test_npz.c: one array of each type that the tests' npz reader takes."""
import numpy as np

np.savez_compressed(
    "tests/fixtures/types.npz",
    **{"a:f4/x": (np.arange(6, dtype="f4") / np.float32(3)).reshape(2, 3)},
    f8=np.float64(0.1), i4=np.array([3, -7], "i4"), i8=np.array([-5000000000], "i8"),
    u1=np.array([0, 1, 255], "u1"), bool=np.array([False, True]),
    s=np.array([b"rose", b"sunflower"]), u=np.array(["rose", "lily"]), empty=np.zeros((0, 4), "f4"))
