"""ONNX Runtime and OpenVINO, inference only: engine_peer.py onnxruntime|openvino NAME...

The networks are timm's, written by torch.onnx with a fixed batch. Of each engine the best of what its documents recommend
counts: ONNX Runtime with all optimizations, one session on all threads or one session per thread; OpenVINO in single precision
(it would take bfloat16 by itself) for latency and for throughput. Batches of 32, and of 4, which fit the caches better.
"""
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import measure
import numpy as np
import torch
import torch_peer

engine = sys.argv[1]


def write(network, size, batch, folder):
    path = str(Path(folder) / f"{network}_{size}_{batch}.onnx")
    model = torch_peer.timm_model(network).to(memory_format=torch.contiguous_format).eval()
    torch.onnx.export(model, (torch.zeros(batch, 3, size, size),), path, dynamo=False, input_names=["pixels"], opset_version=17)
    return path


def onnxruntime_ways(path, pixels):
    import onnxruntime

    def session(threads):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = threads
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    n, feed = measure.threads(), {"pixels": pixels}
    whole = session(n)
    yield "one session", measure.rate(lambda: whole.run(None, feed), len(pixels), 3)
    singles = [session(1) for _ in range(n)]
    with ThreadPoolExecutor(n) as pool:
        yield "a session per thread", measure.rate(lambda: list(pool.map(lambda s: s.run(None, feed), singles)), n * len(pixels), 3)


def openvino_ways(path, pixels):
    import openvino

    n = measure.threads()
    for hint in ("LATENCY", "THROUGHPUT"):
        model = openvino.compile_model(
            path, "CPU", {"PERFORMANCE_HINT": hint, "INFERENCE_NUM_THREADS": n, "INFERENCE_PRECISION_HINT": "f32"}
        )
        queue = openvino.AsyncInferQueue(model, n if hint == "THROUGHPUT" else 1)

        def step(queue=queue):
            for _ in range(len(queue)):
                queue.start_async({0: pixels})
            queue.wait_all()

        yield hint.lower(), measure.rate(step, len(queue) * len(pixels), 3)


def one(kind, network, size):
    if kind != "infer":
        return None
    found, ways = {}, onnxruntime_ways if engine == "onnxruntime" else openvino_ways
    for batch in (measure.BATCH, 4):
        with tempfile.TemporaryDirectory() as folder:
            path = write(network, size, batch, folder)
            pixels = np.random.default_rng(1).standard_normal((batch, 3, size, size), dtype=np.float32)
            found |= {f"{way}, batch {batch}": rate for way, rate in ways(path, pixels)}
    return found


if __name__ == "__main__":
    sys.exit(measure.each(sys.argv[2:], one, engine))
