"""Networks of timm give the same probabilities in tepal, from their safetensors files; others are refused.

    check_timm.py MODEL_TOOL       (tests/interop/model_tool: public functions of tepal.h only)

Needs torch, timm (1.0.31) and safetensors, which `make bench-peers` installs; skipped without.
"""
import json
import sys
import tempfile
from pathlib import Path

from checking import call, check, close, end

try:
    import timm
    import torch
    from safetensors.torch import save_file
except ImportError as missing:
    print(f"skipped  timm's files ({missing})")
    sys.exit(0)

import numpy as np

TOOL = sys.argv[1]
CLASSES, COUNT = 10, 4
PAIRS = [("tf_efficientnet_b0", "efficientnet-b0", 64, 64), ("tf_efficientnet_b1", "efficientnet-b1", 65, 97),
         ("tf_efficientnet_b2", "efficientnet-b2", 96, 65), ("tf_efficientnet_b4", "efficientnet-b4", 64, 64),
         ("efficientnet_b0", "efficientnet-b0-timm", 64, 64), ("efficientnet_b0", "efficientnet-b0-timm", 65, 97),
         ("efficientnet_b2", "efficientnet-b2-timm", 97, 65), ("efficientnet_b4", "efficientnet-b4-timm", 64, 64),
         ("resnet50", "resnet50-v1.5", 64, 64), ("resnet50", "resnet50-v1.5", 65, 97)]


def make(architecture):
    """The network with statistics and biases that are not all zeros and ones."""
    torch.manual_seed(1)
    model = timm.create_model(architecture, pretrained=False, num_classes=CLASSES).eval()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.2)
                module.running_mean.normal_(0, 0.2)
                module.running_var.uniform_(0.5, 1.5)
            elif getattr(module, "bias", None) is not None:
                module.bias.normal_(0, 0.2)
        model.get_classifier().weight /= torch.std(model(normalized(pictures(64, 64))))  # probabilities don't saturate
    return model


def colours(value):
    return torch.tensor(value).reshape(1, 3, 1, 1)


def normalized(pixels, mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)):
    return (torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255 - colours(mean)) / colours(std)


def answers(model, pixels, **colours_of):
    with torch.no_grad():
        return torch.softmax(model(normalized(pixels, **colours_of)), 1).numpy()


def pictures(height, width):
    rng = np.random.default_rng(1)
    plain = rng.uniform(0, 255, (COUNT, 1, 1, 3)) + rng.normal(0, 40, (COUNT, height, width, 3))
    return np.clip(plain, 0, 255).astype("float32")


def ours(folder, network, height, width, weights, pixels, status=0):
    pixels.tofile(folder / "pixels.f32")
    call(TOOL, network, height, width, CLASSES, weights, folder / "pixels.f32", folder / "answers.f32", status=status)
    return np.fromfile(folder / "answers.f32", "float32").reshape(-1, CLASSES)


def alike(folder):
    for architecture, network, height, width in PAIRS:
        model, pixels = make(architecture), pictures(height, width)
        path, theirs = folder / f"{architecture}.random.safetensors", answers(model, pixels)
        save_file(model.state_dict(), path)
        allowed, gap = 1e-4 * float(theirs.max()), float(np.max(np.ptp(theirs, axis=0)))
        check(f"{architecture}: the answers differ from picture to picture", gap > 5 * allowed, gap)
        close(f"timm's {architecture} {height}x{width} answers alike in tepal",
              ours(folder, network, height, width, path, pixels), theirs, allowed)


def beside_a_config(folder):
    folder = folder / "hub"
    folder.mkdir()
    model, pixels = make("tf_efficientnet_b0"), pictures(64, 64)
    save_file(model.state_dict(), folder / "model.safetensors")
    half = {"mean": [0.5] * 3, "std": [0.5] * 3}
    (folder / "config.json").write_text(json.dumps({"architecture": "tf_efficientnet_b0", "pretrained_cfg": half}))
    close("pixels are normalized as config.json says", ours(folder, "efficientnet-b0", 64, 64, folder / "model.safetensors", pixels),
          answers(model, pixels, **half), 1e-4)


def others_are_refused(folder):
    pixels = pictures(64, 64)
    same, other = make("tf_efficientnet_b0"), timm.create_model("efficientnet_b0", num_classes=CLASSES).eval()
    other.load_state_dict(same.state_dict())  # the same names and shapes
    gap = np.max(np.abs(answers(same, pixels) - answers(other, pixels)))
    check("efficientnet_b0 without tf_ is another network", gap > 1e-3, gap)
    for architecture, network in (("efficientnet_b0", "efficientnet-b0"), ("tf_efficientnet_b0", "efficientnet-b0-timm"), ("resnet50", "resnet50")):
        path = folder / f"{architecture}.random.safetensors"
        save_file(timm.create_model(architecture, num_classes=CLASSES).state_dict(), path)
        ours(folder, network, 64, 64, path, pixels, status=3)
        check(f"timm's {architecture} is refused by {network}", True)


with tempfile.TemporaryDirectory() as temporary:
    for part in (alike, beside_a_config, others_are_refused):
        part(Path(temporary))
end()
