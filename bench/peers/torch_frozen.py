"""Frozen training of EfficientNet-B0 at 192x192, batch 32, in PyTorch with timm: prints a JSON line.

    torch_frozen.py [plain|compile]        random pixels from memory; the median of the steps after warming up counts
"""
import json
import statistics
import sys
import time

import timm
import torch

SIZE, BATCH, CLASSES, WARM, STEPS = 192, 32, 104, 3, 12
compiled = "compile" in sys.argv[1:2]
torch.manual_seed(1)
model = timm.create_model("tf_efficientnet_b0", pretrained=False, num_classes=CLASSES, drop_rate=0.2).eval()
for parameter in model.parameters():
    parameter.requires_grad = False
head = model.get_classifier()
for parameter in head.parameters():
    parameter.requires_grad = True
head.train()
optimizer = torch.optim.Adam(head.parameters(), 1e-3)
run = torch.compile(model) if compiled else model
pixels = torch.randn(BATCH, 3, SIZE, SIZE).to(memory_format=torch.channels_last)
model.to(memory_format=torch.channels_last)
labels = torch.arange(BATCH) % CLASSES


def step():
    start = time.perf_counter()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(run(pixels), labels).backward()
    optimizer.step()
    return BATCH / (time.perf_counter() - start)


rates = [step() for _ in range(WARM + STEPS)][WARM:]
print(json.dumps({"name": f"torch{'_compile' if compiled else ''}_frozen_train_b0_192", "images_per_s": round(statistics.median(rates), 1),
                  "input": "memory", "version": torch.__version__}))
