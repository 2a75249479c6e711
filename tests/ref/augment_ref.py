"""Writes tests/fixtures/augment_ref.npz: what torchvision 0.24 makes of small synthetic pictures.

Read by tests/image/test_augment.c. Run from the top folder, with torch and torchvision. Draws come from our own random
numbers, put in the place of torch's: try i of a crop gets the uniforms 4i (area), 4i + 1 (shape), 4i + 2 (row) and 4i + 3
(column) of use 8 of the key.
"""
import numpy as np
import torch
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms import functional as F

rng = np.random.default_rng(4)
out = {}


def philox(key, counter):
    c, k, mask = list(counter), list(key), 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return c


def uniform(key, use, index):
    return (philox(key, [index // 4, use, 0, 0])[index % 4] >> 8) / 16777216


# ---- which rectangle: RandomResizedCrop.get_params ----
class Draws:
    def __init__(self, key):
        self.key, self.uniforms, self.integers = key, 0, 0

    def uniform_(self, tensor, low, high):
        at = 4 * (self.uniforms // 2) + self.uniforms % 2
        self.uniforms += 1
        self.integers = 0
        return tensor.fill_(float(low) + (float(high) - float(low)) * uniform(self.key, 8, at))

    def randint(self, low, high, size):
        at = 4 * ((self.uniforms - 1) // 2) + 2 + self.integers
        self.integers += 1
        return torch.tensor([low + int(uniform(self.key, 8, at) * (high - low))])


about, key_words, rects = [], [], []
draw = None
torch_uniform, torch_randint = torch.Tensor.uniform_, torch.randint
torch.Tensor.uniform_ = lambda self, low, high: draw.uniform_(self, low, high)
torch.randint = lambda low, high, size: draw.randint(low, high, size)
for h, w in [(192, 192), (480, 640), (640, 480), (7, 5), (1, 1), (3, 900), (900, 3)]:
    for least, ratio in [(0.08, 4 / 3), (0.5, 1.0), (1.0, 2.0)]:
        for _ in range(6):
            key = [int(x) for x in rng.integers(0, 2**32, 2)]
            draw = Draws(key)
            i, j, rh, rw = RandomResizedCrop.get_params(torch.zeros(3, h, w), [least, 1.0], [1 / ratio, ratio])
            about.append((h, w, least, ratio))
            key_words.append(key)
            rects.append((i, j, rh, rw))
torch.Tensor.uniform_, torch.randint = torch_uniform, torch_randint
out["crop:about"] = np.array(about, "float32")
out["crop:key"] = np.array(key_words, "uint32").view("int32")
out["crop:rect"] = np.array(rects, "int32")

# ---- the rectangle resized, mirrored: resized_crop, hflip ----
picture = rng.integers(0, 256, (23, 31, 3), dtype=np.uint8)
tensor = torch.from_numpy(picture).permute(2, 0, 1).float()
out["resized:picture"] = picture
boxes = [(0, 0, 23, 31), (3, 5, 20, 26), (10, 0, 4, 31), (22, 30, 1, 1), (1, 2, 16, 16)]
out["resized:rect"] = np.array(boxes, "int32")
for antialias in (False, True):
    pictures = [F.resized_crop(tensor, *box, size=[16, 12], antialias=antialias) for box in boxes]
    pictures += [F.hflip(p) for p in pictures]
    out["resized:antialias" if antialias else "resized:plain"] = np.stack([p.permute(1, 2, 0).numpy() for p in pictures])

# ---- colours: adjust_brightness, adjust_contrast, adjust_saturation in any order. Middling values, so that torchvision,
# which holds them within 0...1 after each of the three, has nothing to hold. ----
calm = torch.from_numpy(rng.uniform(90, 150, (3, 9, 11)).astype("float32"))
out["colour:picture"] = calm.permute(1, 2, 0).numpy()
steps = {"b": F.adjust_brightness, "c": F.adjust_contrast, "s": F.adjust_saturation}
factors, pictures = [], []
for order in ("bcs", "scb", "csb", "b", "c", "s"):
    factor = {k: rng.uniform(0.7, 1.3) if k in order else 1.0 for k in "bcs"}
    p = calm / 255
    for k in order:
        p = steps[k](p, factor[k])
    assert 0 < p.min() and p.max() < 1
    factors.append([factor[k] for k in "bcs"])
    pictures.append(p.permute(1, 2, 0).numpy() * 255)
out["colour:factor"] = np.array(factors, "float32")
out["colour:out"] = np.stack(pictures).astype("float32")

np.savez_compressed("tests/fixtures/augment_ref.npz", **out)
