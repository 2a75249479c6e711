/* options_table - every option of every command; see options.h */
#include "options.h"

#define ROW(type_, struct_, field_, name_, value_, initial_, group_, path_, help_)                 \
  {                                                                                                \
    {name_, value_, initial_, group_, help_}, TP__OPTION_##type_, offsetof(struct_, field_), path_ \
  }

/* What all commands that read data share. s: the struct. */
#define DATA_ROWS(s)                                                                               \
  ROW(STRING, s, data.labels, "labels", "FILE", NULL, "data", true,                                \
      "class names, one a line (default: folder names, or numbers)"),                              \
      ROW(STRING, s, data.image_feature, "image_feature", "NAME", "image", "data", false,          \
          "feature with the encoded picture"),                                                     \
      ROW(STRING, s, data.class_feature, "class_feature", "NAME", "class", "data", false,          \
          "feature with the class (int64, or a class name)"),                                      \
      ROW(STRING, s, data.id_feature, "id_feature", "NAME", "id", "data", false,                   \
          "feature with the id (bytes)"),                                                          \
      ROW(INT64, s, data.label_base, "label_base", "N", "0", "data", false,                        \
          "number of the first class in the shards"),                                              \
      ROW(STRING, s, data.max_bad, "max_bad", "N|P%", "0", "data", false,                          \
          "so many damaged records may be skipped; they are listed")

/* How pixels are made: a property of the network, so only where networks begin, and where pictures
 * are written. */
#define PIXEL_ROWS(s)                                                                              \
  ROW(STRING, s, data.dct, "dct", "fast|accurate", "fast", "data", false,                          \
      "JPEG decoding: TensorFlow's default, or libjpeg's slow one"),                               \
      ROW(BOOL, s, data.exif_rotate, "exif_rotate", NULL, "false", "data", false,                  \
          "turn photos as their EXIF flag says"),                                                  \
      ROW(BOOL, s, data.fast_decode, "fast_decode", NULL, "false", "data", false,                  \
          "big JPEGs at 1/2, 1/4 or 1/8, never below the image size: pixels are not "              \
          "TensorFlow's"),                                                                         \
      ROW(BOOL, s, data.antialias, "antialias", NULL, "false", "data", false,                      \
          "smooth when pictures are made smaller")

#define CACHE_ROWS(s)                                                                              \
  ROW(STRING, s, data.cache, "cache", "none|encoded|pixels", "none", "data", false,                \
      "keep the data set in memory after the first epoch"),                                        \
      ROW(STRING, s, data.cache_limit, "cache_limit", "BYTES", "4G", "data", false,                \
          "largest cache, as 4G or 512M")

#define PRECISION_ROW(s)                                                                           \
  ROW(STRING, s, precision, "precision", "float32|bf16", "float32", "device", false,               \
      "bf16: multiply in bfloat16: TPUs, GPUs, CPUs with avx512_bf16")

/* How several runs, and several views, are averaged. */
#define ENSEMBLE_ROWS(s)                                                                           \
  ROW(STRING, s, combine, "combine", "mean|val-accuracy", "mean", "ensemble", false,               \
      "how several runs are averaged"),                                                            \
      ROW(STRING, s, tta, "tta", "flip,rotate=DEGREES", NULL, "ensemble", false,                   \
          "average test-time views"),                                                              \
      ROW(INT, s, batch, "batch", "N", "32", "ensemble", false, "pictures at once"),               \
      PRECISION_ROW(s)

#define T tp_train_options
static const tp__option_row train_rows[] = {
    ROW(STRINGS, T, train, "train", "PATTERN...", NULL, "data", true,
        "shards ('DIR/*.tfrec'), a folder per class, or a CSV"),
    ROW(STRINGS, T, val, "val", "PATTERN...", NULL, "data", true, "the same for validation"),
    DATA_ROWS(T),
    PIXEL_ROWS(T),
    CACHE_ROWS(T),
    ROW(INT, T, shuffle, "shuffle", "N", "2048", "data", false,
        "shuffle buffer; 0: none, -1: the whole set"),
    ROW(INT, T, interleave, "interleave", "N", "16", "data", false, "shards read in turn"),
    ROW(STRING, T, model, "model", "NAME", "efficientnet-b0", "model", false, "the network"),
    ROW(STRING, T, weights, "weights", "FILE|imagenet|none", "imagenet", "model", true,
        "where training starts"),
    ROW(BOOL, T, skip_mismatch, "skip_mismatch", NULL, "false", "model", false,
        "leave out a head of another size"),
    ROW(STRING, T, image_size, "image_size", "N|HxW", "192", "model", false,
        "pictures are resized to it"),
    ROW(DOUBLE, T, dropout, "dropout", "RATE", "0.2", "model", false, "before the head"),
    ROW(DOUBLE, T, drop_connect, "drop_connect", "RATE", "0.2", "model", false,
        "stochastic depth of the last block, with batch_norm batch"),
    ROW(INT, T, batch, "batch", "N", "32", "training", false, "pictures in a step, per replica"),
    ROW(STRING, T, memory_limit, "memory", "BYTES", NULL, "training", false,
        "stay below it, as 800M: values are computed again instead of kept"),
    ROW(INT, T, epochs, "epochs", "N", "30", "training", false, "of the head, backbone frozen"),
    ROW(INT, T, fine_tune_epochs, "fine_tune_epochs", "N", "0", "training", false,
        "then of the last layers, too"),
    ROW(INT, T, fine_tune_layers, "fine_tune_layers", "N|all", "20", "training", false,
        "how many, counted as Keras lists them"),
    ROW(STRING, T, batch_norm, "batch_norm", "frozen|batch", "frozen", "training", false,
        "statistics of the layers that are fine-tuned"),
    ROW(DOUBLE, T, fine_tune_learning_rate, "fine_tune_learning_rate", "RATE", "1e-05", "training",
        false, "at the start of it"),
    ROW(STRING, T, fine_tune_schedule, "fine_tune_schedule", "NAME", "constant", "training", false,
        "of that rate: constant, exponential, cosine"),
    ROW(DOUBLE, T, fine_tune_head_factor, "fine_tune_head_factor", "X", "1", "training", false,
        "the head learns at X times that rate"),
    ROW(INT, T, steps_per_epoch, "steps_per_epoch", "N", "0", "training", false,
        "0: every record once"),
    ROW(INT, T, validation_steps, "validation_steps", "N", "0", "training", false,
        "0: every record once"),
    ROW(STRING, T, optimizer, "optimizer", "adam|sgd", "adam", "training", false, "as Keras 3's"),
    ROW(DOUBLE, T, learning_rate, "learning_rate", "RATE", "0.001", "training", false,
        "at the start"),
    ROW(DOUBLE, T, beta_1, "beta_1", "X", "0.9", "training", false, "Adam"),
    ROW(DOUBLE, T, beta_2, "beta_2", "X", "0.999", "training", false, "Adam"),
    ROW(DOUBLE, T, epsilon, "epsilon", "X", "1e-07", "training", false, "Adam"),
    ROW(DOUBLE, T, momentum, "momentum", "X", "0.9", "training", false, "SGD"),
    ROW(BOOL, T, nesterov, "nesterov", NULL, "false", "training", false, "SGD"),
    ROW(DOUBLE, T, weight_decay, "weight_decay", "X", "0", "training", false,
        "AdamW's: each step first takes rate x X of each weight"),
    ROW(DOUBLE, T, clip_norm, "clip_norm", "X", "0", "training", false,
        "largest norm of all gradients together; 0: any"),
    ROW(DOUBLE, T, ema_momentum, "ema_momentum", "X", "0", "training", false,
        "weights are averaged over the steps, as 0.99; 0: they are not"),
    ROW(STRING, T, schedule, "schedule", "NAME", "exponential", "training", false,
        "of the rate: constant, exponential, cosine, piecewise"),
    ROW(DOUBLE, T, decay_rate, "decay_rate", "X", "0.96", "training", false, "exponential"),
    ROW(INT, T, decay_steps, "decay_steps", "N", "0", "training", false,
        "exponential (0: 100); cosine (0: all of the phase)"),
    ROW(BOOL, T, staircase, "staircase", NULL, "true", "training", false,
        "exponential: in whole steps"),
    ROW(INT, T, warmup_steps, "warmup_steps", "N", "0", "training", false, "cosine: linear from 0"),
    ROW(DOUBLE, T, final_rate, "final_rate", "X", "0", "training", false,
        "cosine: fraction at the end"),
    ROW(STRING, T, boundaries, "boundaries", "N,N", NULL, "training", false, "piecewise: steps"),
    ROW(STRING, T, values, "values", "X,X,X", NULL, "training", false, "piecewise: rates"),
    ROW(DOUBLE, T, label_smoothing, "label_smoothing", "X", "0", "training", false, "of the loss"),
    ROW(STRING, T, class_weights, "class_weights", "none|balanced|C:W,...", "none", "training",
        false, "factors of the classes' losses"),
    ROW(UINT64, T, seed, "seed", "N", "1", "training", false,
        "of order, augmentation, dropout and new weights"),
    PRECISION_ROW(T),
    ROW(STRING, T, accumulate, "accumulate", "auto|N", "auto", "device", false,
        "a batch goes through in N parts, gradients are added; auto: when memory asks for it"),
    ROW(INT, T, steps_per_execution, "steps_per_execution", "N", "1", "device", false,
        "steps in one call of a TPU or GPU"),
    ROW(BOOL, T, sync_batch_norm, "sync_batch_norm", NULL, "false", "device", false,
        "batch statistics over all replicas"),
    ROW(STRING, T, transfer, "transfer", "auto|float32|uint8", "auto", "device", false,
        "pixels cross so to a TPU or GPU; auto: uint8 where that changes nothing"),
    ROW(BOOL, T, flip, "flip", NULL, "true", "augmentation", false, "mirror every second picture"),
    ROW(DOUBLE, T, rotate, "rotate", "X", "0.1", "augmentation", false,
        "turn by up to that fraction of a turn; 0: none"),
    ROW(STRING, T, augment_on, "augment_on", "host|device", "host", "augmentation", false,
        "device: a TPU or GPU does flips and turns, this machine decodes"),
    ROW(STRING, T, rotate_fill, "rotate_fill", "NAME", "reflect", "augmentation", false,
        "corners: reflect, constant, nearest, wrap"),
    ROW(DOUBLE, T, rotate_fill_value, "rotate_fill_value", "X", "0", "augmentation", false,
        "of constant, 0 to 255"),
    ROW(DOUBLE, T, random_crop, "random_crop", "X", "0", "augmentation", false,
        "cut out a part of X of the area or more, as 0.5; 0: none"),
    ROW(DOUBLE, T, random_crop_ratio, "random_crop_ratio", "X", "1.333333", "augmentation", false,
        "its sides are up to X to 1, either way"),
    ROW(DOUBLE, T, brightness, "brightness", "X", "0", "augmentation", false,
        "change it by a factor of 1 - X to 1 + X"),
    ROW(DOUBLE, T, contrast, "contrast", "X", "0", "augmentation", false, "the same"),
    ROW(DOUBLE, T, saturation, "saturation", "X", "0", "augmentation", false, "the same"),
    ROW(DOUBLE, T, mixup, "mixup", "ALPHA", "0", "augmentation", false,
        "mix two pictures and their labels by Beta(ALPHA, ALPHA), as 0.2"),
    ROW(DOUBLE, T, cutmix, "cutmix", "ALPHA", "0", "augmentation", false,
        "put a part of one into the other; with mixup, one of the two"),
    ROW(INT, T, early_stopping, "early_stopping", "EPOCHS", "5", "callbacks", false,
        "without improvement; 0: off"),
    ROW(STRING, T, early_stopping_monitor, "early_stopping_monitor", "NAME", "val_loss",
        "callbacks", false, "what is watched"),
    ROW(DOUBLE, T, early_stopping_min_delta, "early_stopping_min_delta", "X", "0", "callbacks",
        false, "less is no improvement"),
    ROW(DOUBLE, T, plateau_factor, "plateau_factor", "X", "0.5", "callbacks", false,
        "the rate times this on a plateau"),
    ROW(INT, T, plateau_patience, "plateau_patience", "EPOCHS", "3", "callbacks", false, "0: off"),
    ROW(DOUBLE, T, plateau_min_rate, "plateau_min_rate", "RATE", "1e-06", "callbacks", false,
        "never lower"),
    ROW(INT, T, plateau_cooldown, "plateau_cooldown", "EPOCHS", "0", "callbacks", false,
        "rest after a lowering"),
    ROW(STRING, T, plateau_monitor, "plateau_monitor", "NAME", "val_loss", "callbacks", false,
        "what is watched"),
    ROW(STRING, T, best_monitor, "best_monitor", "NAME", "val_accuracy", "callbacks", false,
        "which epoch is the best"),
    ROW(STRING, T, run, "run", "DIR", NULL, "output", false, "folder of the run"),
    ROW(BOOL, T, overwrite, "overwrite", NULL, "false", "output", false, "replace an existing run"),
    ROW(DOUBLE, T, checkpoint_minutes, "checkpoint_minutes", "X", "10", "output", false,
        "also inside an epoch; 0: only after each"),
    ROW(BOOL, T, dry_run, "dry_run", NULL, "false", "output", false,
        "two steps and one validation batch, then memory and time; writes nothing"),
};
#undef T

#define T tp_predict_options
static const tp__option_row predict_rows[] = {
    ROW(STRINGS, T, inputs, "data", "PATTERN...", NULL, "data", true,
        "shards, a folder of photos, or a CSV"),
    DATA_ROWS(T),
    ROW(STRING, T, out, "out", "FILE", "submission.csv", "output", true,
        "the CSV; - for standard output"),
    ROW(BOOL, T, probabilities, "probabilities", NULL, "false", "output", false,
        "a column for each class instead of the label"),
    ROW(BOOL, T, label_names, "label_names", NULL, "false", "output", false,
        "class names instead of numbers"),
    ROW(STRING, T, id_column, "id_column", "NAME", "id", "output", false, "header of the ids"),
    ROW(STRING, T, label_column, "label_column", "NAME", "label", "output", false,
        "header of the labels"),
    ROW(INT64, T, expect, "expect", "N", "0", "output", false,
        "refuse when there are not so many records; 0: any"),
    ENSEMBLE_ROWS(T),
};
#undef T

#define T tp_evaluate_options
static const tp__option_row evaluate_rows[] = {
    ROW(STRINGS, T, inputs, "data", "PATTERN...", NULL, "data", true,
        "shards, a folder per class, or a CSV"),
    DATA_ROWS(T),
    ROW(STRING, T, predictions, "predictions", "FILE", NULL, "files", true,
        "a CSV of predictions instead of a run"),
    ROW(STRING, T, truth, "truth", "FILE", NULL, "files", true, "the CSV of true labels"),
    ROW(STRING, T, id_column, "id_column", "NAME", "id", "files", false, "column of the ids"),
    ROW(STRING, T, label_column, "label_column", "NAME", "label", "files", false,
        "column of the labels"),
    ROW(STRING, T, truth_id_column, "truth_id_column", "NAME", NULL, "files", false,
        "in the truth, where it differs"),
    ROW(STRING, T, truth_label_column, "truth_label_column", "NAME", NULL, "files", false,
        "in the truth, where it differs"),
    ENSEMBLE_ROWS(T),
};
#undef T

#define T tp_inspect_options
static const tp__option_row inspect_rows[] = {
    DATA_ROWS(T),
    ROW(STRING, T, json, "json", "FILE", NULL, "output", true, "save what was found"),
    ROW(BOOL, T, decode, "decode", NULL, "true", "output", false, "decode every picture"),
};
#undef T

#define T tp_pack_options
static const tp__option_row pack_rows[] = {
    DATA_ROWS(T),
    PIXEL_ROWS(T),
    ROW(STRING, T, out, "out", "DIR", NULL, "output", true, "gets train/, val/, test/, labels.txt"),
    ROW(STRING, T, split, "split", "TRAIN,VAL,TEST", "80,10,10", "output", false,
        "per cent, stratified by class"),
    ROW(STRING, T, image_size, "image_size", "N|HxW", NULL, "output", false,
        "resize and write as JPEG (default: bytes as they are)"),
    ROW(INT, T, quality, "quality", "N", "95", "output", false, "of JPEG, 1 to 100"),
    ROW(INT, T, per_shard, "per_shard", "N", "512", "output", false, "records in a shard"),
    ROW(UINT64, T, seed, "seed", "N", "1", "output", false, "of the split"),
    ROW(BOOL, T, overwrite, "overwrite", NULL, "false", "output", false,
        "replace an existing folder"),
};
#undef T

#define T tp_draw_options
static const tp__option_row draw_rows[] = {
    ROW(STRING, T, out, "out", "DIR", NULL, "output", true,
        "gets train/, val/, test/, labels.txt, test_labels.csv"),
    ROW(INT, T, species, "species", "N", "16", "output", false, "kinds of flowers"),
    ROW(INT, T, train, "train", "N", "40", "output", false, "pictures of each kind"),
    ROW(INT, T, val, "val", "N", "10", "output", false, "pictures of each kind"),
    ROW(INT, T, test, "test", "N", "10", "output", false, "pictures of each kind"),
    ROW(INT, T, size, "size", "N", "192", "output", false, "height and width"),
    ROW(UINT64, T, seed, "seed", "N", "1", "output", false, "of everything"),
    ROW(BOOL, T, overwrite, "overwrite", NULL, "false", "output", false,
        "replace an existing folder"),
};
#undef T

const tp__option_row *tp__option_rows(tp_options_kind kind, size_t *count)
{
#define CASE(kind_, table)                                                                         \
  case kind_:                                                                                      \
    *count = sizeof table / sizeof table[0];                                                       \
    return table
  switch (kind) {
    CASE(TP_OPTIONS_TRAIN, train_rows);
    CASE(TP_OPTIONS_PREDICT, predict_rows);
    CASE(TP_OPTIONS_EVALUATE, evaluate_rows);
    CASE(TP_OPTIONS_INSPECT, inspect_rows);
    CASE(TP_OPTIONS_PACK, pack_rows);
    CASE(TP_OPTIONS_DRAW, draw_rows);
  }
#undef CASE
  *count = 0;
  return NULL;
}
