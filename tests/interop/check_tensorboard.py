"""TensorBoard shows the epochs of a run that was killed, its event file cut, and that was resumed: all of them, under the known tags.

    check_tensorboard.py TEPAL
"""
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from checking import call, check, end

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

TEPAL = sys.argv[1]
TAGS = ["epoch_accuracy", "epoch_learning_rate", "epoch_loss", "epoch_top_5", "epoch_val_accuracy", "epoch_val_loss",
        "epoch_val_macro_f1", "epoch_val_top_5", "images_per_s"]


def steps_shown(run):
    events = EventAccumulator(str(run), size_guidance={"tensors": 0})
    events.Reload()
    return {tag: sorted({e.step for e in events.Tensors(tag)}) for tag in events.Tags()["tensors"]}


def epochs_done(run):
    history = run / "history.csv"
    return max(0, len(history.read_text().splitlines()) - 1) if history.exists() else 0


def train_until_killed(words, run, epochs):
    """Starts a run of very many epochs and kills it after some; returns how many the history has."""
    process = subprocess.Popen([str(w) for w in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    start = time.monotonic()
    while epochs_done(run) < epochs and process.poll() is None and time.monotonic() - start < 300:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    check("a long run was killed", process.returncode == -signal.SIGKILL and epochs_done(run) >= epochs, process.returncode)
    return epochs_done(run)


def main(folder):
    flowers, run = folder / "flowers", folder / "run"
    call(TEPAL, "draw", "--out", flowers, "--species", 2, "--train", 6, "--val", 3, "--test", 2, "--size", 32)
    done = train_until_killed(
        [TEPAL, "train", "--train", flowers / "train/*.tfrec", "--val", flowers / "val/*.tfrec", "--model", "efficientnet-lite0", "--weights",
         "none", "--image-size", 32, "--batch", 4, "--early-stopping", 0, "--epochs", 100000, "--run", run], run, 2)
    for file in run.glob("events.out.tfevents.*"):
        file.write_bytes(file.read_bytes()[:-9])
    recipe = run / "recipe.ini"
    recipe.write_text(recipe.read_text().replace("epochs = 100000\n", f"epochs = {done + 2}\n", 1))
    call(TEPAL, "train", "--resume", run)
    shown = steps_shown(run)
    files = sorted(p.name for p in run.glob("events.out.tfevents.*"))
    check("a resumed run has an event file of its own", len(files) == 2, files)
    check("tags", sorted(shown) == TAGS, sorted(shown))
    check("every epoch is shown", shown.get("epoch_loss") == list(range(done + 2)), shown)
    check("history.csv has a line per epoch", epochs_done(run) == done + 2, epochs_done(run))


with tempfile.TemporaryDirectory() as temporary:
    main(Path(temporary))
end()
