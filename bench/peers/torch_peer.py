"""PyTorch with timm: torch_peer.py eager|compile NAME...

At its best on a processor: channels_last memory, oneDNN, a thread for each processor, EfficientNets with plain padding (timm's
tf_ ones pad in a step of their own), gradients off where nothing trains, inductor's freezing for inference. Pixels are random
and in memory. OpenMP's threads spin at barriers: with anything else on the processors PyTorch loses far more than its share.
"""
import sys

import measure
import timm
import torch

compiled = sys.argv[1] == "compile"
torch.set_num_threads(measure.threads())
torch.manual_seed(1)


def timm_model(network):
    name = f"efficientnet_{network}" if network in ("b0", "b1", "b2", "b3", "b4") else network.removesuffix("-v1.5")
    model = timm.create_model(name, pretrained=False, num_classes=measure.CLASSES)
    if network == "resnet50":  # Keras' and the paper's: the stride is in the first convolution of a block
        for layer in (model.layer2, model.layer3, model.layer4):
            layer[0].conv1.stride, layer[0].conv2.stride = (2, 2), (1, 1)
    return model.to(memory_format=torch.channels_last)


def pixels_of(size):
    return torch.randn(measure.BATCH, 3, size, size).to(memory_format=torch.channels_last)


def inference(model, size):
    import torch._inductor.config

    torch._inductor.config.freezing = compiled
    model.eval()
    pixels, run = pixels_of(size), torch.compile(model) if compiled else model
    with torch.inference_mode() if not compiled else torch.no_grad():
        return measure.rate(lambda: run(pixels))


def training(model, size, kind):
    model.train()
    if kind in ("frozen_train", "full_train_frozen_bn"):
        for module in model.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                module.eval()
    if kind == "frozen_train":
        for parameter in model.parameters():
            parameter.requires_grad = False
        for parameter in model.get_classifier().parameters():
            parameter.requires_grad = True
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 1e-3)
    run = torch.compile(model) if compiled else model
    pixels, labels = pixels_of(size), torch.arange(measure.BATCH) % measure.CLASSES

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(run(pixels), labels).backward()
        optimizer.step()

    return measure.rate(step)


def one(kind, network, size):
    if kind in ("input", "finetune"):  # "the last 20 layers" are counted as Keras lists them
        return None
    torch.compiler.reset()
    model = timm_model(network)
    return inference(model, size) if kind == "infer" else training(model, size, kind)


if __name__ == "__main__":
    sys.exit(measure.each(sys.argv[2:], one, f"torch {sys.argv[1]}"))
