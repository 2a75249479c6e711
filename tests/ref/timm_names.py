#!/usr/bin/env python3
"""Writes the names and shapes of timm's state dicts, for tests/model/test_weights_timm.c.

    python tests/ref/timm_names.py tests/fixtures        (timm 1.0.31, torch 2.9)

timm_names.txt.gz: sections headed by "model ARCHITECTURE"; in each a line per array: "name dim,dim,...", "-" for a scalar.
"""
import gzip
import os
import sys

import timm

text = ""
for architecture in [f"tf_efficientnet_b{i}" for i in range(8)] + ["resnet50"]:
    text += f"model {architecture}\n"
    for name, tensor in timm.create_model(architecture).state_dict().items():
        text += f"{name} {','.join(map(str, tensor.shape)) or '-'}\n"
with open(os.path.join(sys.argv[1], "timm_names.txt.gz"), "wb") as raw:
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:
        out.write(text.encode())
