/* tepal.h - the public interface of tepal, and its manual.
 *
 * tepal trains image classifiers on CPUs (and, later, TPUs and GPUs) without Python: photos or
 * TFRecords in, a trained network and a submission.csv out, with the numbers Keras gives.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TEPAL_H
#define TEPAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define TP_VERSION "0.1.0"

/* ------------------------------------------------------------------------------------------------------------------
 * 1. Status and errors
 *
 * Every function that can fail returns a tp_status and fills a tp_error that the caller owns (it
 * may be NULL). The values are the exit codes of the command. On failure all results are left as
 * they were and nothing is half-written.
 */
#define TP_STATUS_MAP(X)                                                                           \
  X(TP_OK, 0, "done")                                                                              \
  X(TP_ERR_INTERNAL, 1, "a fault of tepal itself, or out of memory")                               \
  X(TP_ERR_USAGE, 2, "wrong usage")                                                                \
  X(TP_ERR_DATA, 3, "bad data or weights")                                                         \
  X(TP_ERR_DEVICE, 4, "device not available")                                                      \
  X(TP_ERR_OUTPUT, 5, "output could not be written")                                               \
  X(TP_STOPPED, 6, "stopped, can be resumed")

typedef enum tp_status {
#define TP_STATUS_ENUM_(name, code, text) name = code,
  TP_STATUS_MAP(TP_STATUS_ENUM_)
#undef TP_STATUS_ENUM_
} tp_status;

#if defined(__GNUC__)
#define TP_CHECKED      __attribute__((warn_unused_result))
#define TP_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define TP_CHECKED
#define TP_PRINTF(f, a)
#endif

/* What went wrong, from the outermost place to the fact:
 * "training set: 03-192x192-433.tfrec: record 12 at byte 91204: data checksum differs; ..." */
typedef struct tp_error {
  tp_status status;
  char text[2048];
} tp_error;

/* The general meaning of a status ("bad data or weights"). Never NULL. */
const char *tp_status_text(tp_status status);

/* The version of the library that is running (TP_VERSION is that of the header). */
const char *tp_version(void);

/* Frees text that a function of this header returned. Takes NULL. */
void tp_free(void *memory);

/* ------------------------------------------------------------------------------------------------------------------
 * 2. Context: threads, messages, progress, stopping
 *
 * One context for one job at a time. It owns the thread pool. Functions that take a context are
 * called from one thread at a time; tp_context_stop may be called from anywhere, a signal handler
 * too.
 */
typedef struct tp_context tp_context;

typedef enum tp_level { TP_LEVEL_INFO, TP_LEVEL_WARNING } tp_level;

/* One line for people, without line end. text is borrowed for the call. */
typedef void (*tp_log_fn)(void *user, tp_level level, const char *text);

/* Where a job is. Sent at most about ten times a second, and at the end of each epoch and stage. */
typedef struct tp_progress {
  const char *stage;   /* "train", "validate", "predict", "inspect", "pack", "draw", "fetch" */
  int epoch, epochs;   /* 1-based number of this epoch and the last one planned; 0: no epochs */
  int64_t step, steps; /* done, of */
  double images_per_s; /* of this stage so far */
  double seconds, seconds_left;  /* of this stage; seconds_left < 0: not known yet */
  double loss, accuracy;         /* running means over this epoch's examples; NaN: none */
  double val_loss, val_accuracy; /* at the end of an epoch; NaN before */
  double learning_rate;          /* NaN: none */
  bool done;                     /* the last message of this stage */
} tp_progress;

typedef void (*tp_progress_fn)(void *user, const tp_progress *progress);

typedef struct tp_context_options {
  int threads;        /* 0: as many as processors this process may use */
  const char *device; /* NULL or "auto": the first of TPU, GPU, CPU that is there; "tpu", "gpu",
                         "cpu", or the path of a PJRT plugin */
  int replicas;       /* devices to use; 0: all */
  const char *cache;  /* folder of pretrained weights; NULL: TEPAL_CACHE, else the XDG cache */
  tp_log_fn log;      /* NULL: silent */
  tp_progress_fn progress; /* NULL: none */
  void *user;              /* given to log and progress */
} tp_context_options;

/* options may be NULL. Errors: TP_ERR_DEVICE, TP_ERR_USAGE. Returns: tp_context_free. PJRT plugins
 * (TPU, GPU) write to standard error what they do; the environment variable TF_CPP_MIN_LOG_LEVEL=3,
 * set before, leaves only what is fatal. */
tp_status tp_context_new(const tp_context_options *options, tp_context **context,
                         tp_error *error) TP_CHECKED;
void tp_context_free(tp_context *context);

/* Asks the running job to end: training saves a checkpoint and returns TP_STOPPED.
 * Async-signal-safe. */
void tp_context_stop(tp_context *context);

/* "cpu: 2 threads, AVX-512; 1 replica". The device is opened now, if no job has done it yet; where
 * that fails, "none: " and why. Borrowed from the context until the next call. */
const char *tp_context_device(tp_context *context);

/* A place where training could run. */
typedef struct tp_device {
  const char *name;    /* "tpu", "gpu", "cpu", or the path that was asked for */
  const char *kind;    /* "TPU v3", "2 threads, AVX-512"; NULL: not usable */
  const char *version; /* of its plugin: "PJRT 0.115, StableHLO 1.20.0"; NULL: has none */
  const char *plugin;  /* path of its plugin; NULL: has none, or none was found */
  const char *reason;  /* why it can't be used; NULL: it can */
  int replicas;
  uint64_t memory; /* bytes of each replica; 0: not told */
  bool automatic;  /* "auto" takes this one */
} tp_device;

typedef struct tp_devices {
  const tp_device *item; /* TPU, GPUs, CPU */
  size_t count;
  void *memory; /* private */
} tp_devices;

/* Looks for devices as a context does, and opens none: each is tried in a child process that may
 * take 25 s. options (may be NULL): threads and device; "auto" lists all, a name or path only that
 * one. What is absent or broken is in the list, with its reason, and no error. Free with
 * tp_devices_free. */
tp_status tp_devices_find(const tp_context_options *options, tp_devices *devices,
                          tp_error *error) TP_CHECKED;
void tp_devices_free(tp_devices *devices);

/* The number of this process among those that mpirun started to train one network together; 0 also
 * for one alone. Process 0 writes the files and reports; errors that it reports have no text on the
 * others. */
int tp_context_process(const tp_context *context);

/* One line as Keras' progress bar shows it, fitted to `width` columns; writes to text and returns
 * it. */
char *tp_progress_text(const tp_progress *progress, int width, char *text, size_t size);

/* ------------------------------------------------------------------------------------------------------------------
 * 3. Options
 *
 * A field here, a flag of the command (--learning-rate) and a line of recipe.ini (learning_rate =
 * 0.001) have the same name. Structs are filled with defaults by tp_options_default, then changed
 * directly or by tp_options_set. Strings are borrowed; those set by tp_options_set live until
 * tp_options_free.
 */
typedef struct tp_strings {
  const char *const *item;
  size_t count;
} tp_strings;

/* What tp_options_set made for one struct; private. */
typedef struct tp_options_memory tp_options_memory;

/* How data sets are read. A data set is given as one or more patterns, each of them one of
 *   a glob pattern of TFRecord shards    'train/\*.tfrec' (gzip and zlib are recognised)
 *   a folder                             with one sub-folder of photos per class, or shards, or
 * photos without labels a CSV file                           path,label
 */
typedef struct tp_data_options {
  const char *labels; /* file of class names, one a line; NULL: the folders' names, or the largest
                         label + 1 */
  const char *image_feature; /* "image"; TF-Slim: "image/encoded" */
  const char *class_feature; /* "class"; TF-Slim: "image/class/label" */
  const char *id_feature;    /* "id" */
  int64_t label_base;        /* 0; 1 when the shards count classes from 1 */
  const char *max_bad;       /* "0": damaged data is an error; "N" or "P%": so many records may be
                                skipped, and are listed */
  const char *dct; /* "fast": TensorFlow's default pixels; "accurate": libjpeg's slow integer DCT */
  bool exif_rotate; /* turn photos as their EXIF flag says (TensorFlow does not) */
  bool fast_decode; /* big JPEGs are decoded at 1/2, 1/4 or 1/8 of their size, as long as that is
                       not below image_size: faster, other pixels than TensorFlow's */
  bool antialias;   /* when resizing */
  const char
      *cache; /* "none", "encoded" (bytes in memory), "pixels" (decoded 8-bit pictures in memory) */
  const char *cache_limit; /* "4G": the cache refuses to grow beyond */
} tp_data_options;

typedef struct tp_train_options {
  tp_options_memory *memory; /* private; NULL at first */
  tp_data_options data;
  tp_strings train, val; /* patterns; val may be empty: no validation */
  const char *model;     /* "efficientnet-b0"; all: tp_model_names */
  const char
      *weights; /* "imagenet", "none" or a file (.h5, .weights.h5, .keras, .safetensors, .pth) */
  bool skip_mismatch;       /* leave out a head of another size */
  const char *run;          /* folder of the run */
  bool overwrite;           /* an existing run folder is replaced */
  const char *image_size;   /* "192" or "HEIGHTxWIDTH" */
  int batch;                /* per replica (of mpirun: per process): 32 */
  const char *memory_limit; /* "1G": the process stays below it on a CPU: of what full training
                               keeps, as much is computed again as it takes. NULL: no limit */
  int epochs;               /* of the head: 30 */
  int fine_tune_epochs;     /* 0: no second phase */
  int fine_tune_layers;     /* 20: the last layers of the backbone; -1, "all": all of them */
  const char *batch_norm;   /* "frozen": the moving statistics, unchanged; "batch": layers that
                               are fine-tuned go by the batch and move their statistics */
  double fine_tune_learning_rate; /* 1e-5 */
  const char *fine_tune_schedule; /* "constant", "exponential", "cosine"; with the schedule's decay,
                                     warm-up and final rate */
  double fine_tune_head_factor;   /* 1: the head learns at so many times that rate */
  int steps_per_epoch;            /* 0: every record once */
  int validation_steps;           /* 0: every record once */
  const char *optimizer;          /* "adam", "sgd" */
  double learning_rate;           /* 1e-3 */
  double beta_1, beta_2, epsilon; /* Adam: 0.9, 0.999, 1e-7 */
  double momentum;                /* SGD: 0.9 */
  bool nesterov;
  double
      weight_decay; /* 0; of all trained weights, before each update: Keras' AdamW(weight_decay) */
  double clip_norm; /* 0: off; Keras' global_clipnorm */
  double ema_momentum;       /* 0: off; Keras' use_ema with SwapEMAWeights: averaged weights are
                                validated,       kept as the best, and left at the end of a phase */
  const char *schedule;      /* "exponential", "constant", "cosine", "piecewise" */
  double decay_rate;         /* exponential: 0.96 */
  int decay_steps;           /* exponential: 0 = 100; cosine: 0 = all steps of the phase */
  bool staircase;            /* exponential: true */
  int warmup_steps;          /* cosine: linear from 0 */
  double final_rate;         /* cosine: fraction of learning_rate at the end, 0 */
  const char *boundaries;    /* piecewise: "1000,2000" */
  const char *values;        /* piecewise: "1e-3,5e-4,1e-4" */
  double label_smoothing;    /* 0 */
  const char *class_weights; /* "none", "balanced" or "0:2,5:0.5" */
  double dropout;            /* 0.2 */
  double drop_connect;       /* 0.2: stochastic depth, only with batch_norm "batch" */
  bool flip;                 /* true: mirror every second example */
  double rotate;             /* 0.1: up to that fraction of a full turn either way; 0: none */
  const char *rotate_fill;   /* "reflect", "constant", "nearest", "wrap" */
  double rotate_fill_value;  /* 0 */
  double random_crop; /* 0: none; else a part of at least that share of the area is cut out, as
                         torchvision's RandomResizedCrop */
  double random_crop_ratio;                /* 4/3: its sides are up to so unequal, either way */
  double brightness, contrast, saturation; /* 0: unchanged; as torchvision's ColorJitter */
  double mixup, cutmix; /* 0: off; the alpha of Keras' MixUp, and of its CutMix; with both, a coin
                           decides for each picture */
  int shuffle;    /* 2048: size of the shuffle buffer; 0: order of the files; -1: the whole set */
  int interleave; /* 16: shards read in turn */
  int early_stopping;                 /* 5 epochs without improvement; 0: off */
  const char *early_stopping_monitor; /* "val_loss" */
  double early_stopping_min_delta;    /* 0 */
  double plateau_factor;              /* 0.5 */
  int plateau_patience;               /* 3; 0: off */
  double plateau_min_rate;            /* 1e-6 */
  int plateau_cooldown;               /* 0 */
  const char *plateau_monitor;        /* "val_loss" */
  const char *best_monitor;           /* "val_accuracy": which epoch is the best */
  double checkpoint_minutes; /* 10: also in the middle of an epoch; 0: only after each epoch */
  const char *precision;  /* "float32"; "bf16": TPUs, GPUs, and CPUs that have AVX-512's products of
                             bfloat16 (others: an error), multiply in bfloat16; weights, sums,
                             batch statistics and loss stay float32 */
  const char *accumulate; /* "auto": a batch that a device has no memory for goes through in
                             parts, and gradients are added; "N": in N parts */
  int steps_per_execution; /* 1: steps that a TPU or GPU takes in one call, for short steps */
  bool sync_batch_norm;    /* batch statistics over all replicas, not each replica's own */
  const char *transfer;    /* pixels cross to a TPU or GPU as "uint8" (rounded), "float32", or
                              "auto": uint8 where that changes nothing */
  const char *augment_on;  /* "host"; "device": flips and rotations are computed by the TPU or GPU,
                              from the same random numbers */
  uint64_t seed;           /* 1 */
  bool dry_run; /* build everything, two steps and one validation batch, report memory and time,
                   write nothing */
} tp_train_options;

typedef struct tp_predict_options {
  tp_options_memory *memory; /* private; NULL at first */
  tp_data_options data;
  tp_strings runs;    /* one run folder or checkpoint, or several: an ensemble */
  tp_strings inputs;  /* patterns; --data on the command line */
  const char *out;    /* CSV; "-": standard output */
  bool probabilities; /* all columns instead of the label */
  const char
      *combine;    /* "mean", "val-accuracy" (weighted by each run's best validation accuracy) */
  const char *tta; /* NULL: none; "flip", "rotate=DEGREES", "flip,rotate=DEGREES" */
  const char *id_column, *label_column; /* "id", "label" */
  bool label_names;                     /* write class names instead of numbers */
  int batch;                            /* 32 */
  const char *precision;                /* "float32", "bf16": as in tp_train_options */
  int64_t expect; /* 0, or the number of records that must be there (a submission's) */
} tp_predict_options;

typedef struct tp_evaluate_options {
  tp_options_memory *memory; /* private; NULL at first */
  tp_data_options data;
  tp_strings runs, inputs;                          /* a run (or ensemble) on data ... */
  const char *predictions, *truth;                  /* ... or one CSV against another */
  const char *id_column, *label_column;             /* of predictions: "id", "label" */
  const char *truth_id_column, *truth_label_column; /* NULL: the same */
  const char *combine, *tta;
  int batch;
  const char *precision;
} tp_evaluate_options;

typedef struct tp_inspect_options {
  tp_options_memory *memory; /* private; NULL at first */
  tp_data_options data;
  tp_strings inputs; /* patterns; each folder of shards is one split */
  const char *json;  /* NULL, or where to save what was found */
  bool decode;       /* true: decode every picture */
} tp_inspect_options;

typedef struct tp_pack_options {
  tp_options_memory *memory; /* private; NULL at first */
  tp_data_options data;
  tp_strings inputs;      /* folder per class, CSV or shards */
  const char *out;        /* folder: out/train/NN-WxH-COUNT.tfrec, ... and out/labels.txt */
  const char *split;      /* "80,10,10": train, val, test per cent, stratified by class */
  const char *image_size; /* NULL: bytes are kept as they are; "192" or "HxW": decoded, resized,
                             written as JPEG */
  int quality;            /* 95 */
  int per_shard;          /* records in a shard: 512 */
  uint64_t seed;
  bool overwrite;
} tp_pack_options;

typedef struct tp_draw_options {
  tp_options_memory *memory; /* private; NULL at first */
  const char *out;           /* folder: train/, val/, test/ shards, labels.txt, test_labels.csv,
                                sample_submission.csv */
  int species;               /* 16, at most 32 */
  int train, val, test;      /* pictures of each species: 40, 10, 10 */
  int size;                  /* 192 */
  uint64_t seed;
  bool overwrite;
} tp_draw_options;

typedef enum tp_options_kind {
  TP_OPTIONS_TRAIN,
  TP_OPTIONS_PREDICT,
  TP_OPTIONS_EVALUATE,
  TP_OPTIONS_INSPECT,
  TP_OPTIONS_PACK,
  TP_OPTIONS_DRAW
} tp_options_kind;

/* One option as help and recipes show it. */
typedef struct tp_option {
  const char *name;    /* "learning_rate" */
  const char *value;   /* "RATE", or NULL for a switch */
  const char *initial; /* default as text */
  const char *group;   /* "data", "model", "training", "augmentation", "callbacks", "output" */
  const char *help;    /* one line */
} tp_option;

/* The index-th option of a kind, in the order of the help; false when there is none. */
bool tp_options_at(tp_options_kind kind, size_t index, tp_option *option);
/* True when the option is a switch: on the command line it takes no value (--no-NAME turns it off).
 */
bool tp_options_is_switch(tp_options_kind kind, const char *name);
/* Fills a struct of that kind with the defaults; whatever was in it is lost. */
void tp_options_default(tp_options_kind kind, void *options);
/* Sets one option from text; name with '-' or '_'. A switch takes "true"/"false" (NULL: true).
 * Options that take several values (tp_strings) add one. Errors: TP_ERR_USAGE: unknown name (with
 * the nearest), wrong value with what is allowed. The struct is unchanged then. */
tp_status tp_options_set(tp_options_kind kind, void *options, const char *name, const char *value,
                         tp_error *error) TP_CHECKED;
/* Reads a recipe.ini. Later flags may still change it. */
tp_status tp_options_read(tp_options_kind kind, void *options, const char *path,
                          tp_error *error) TP_CHECKED;
/* Frees what tp_options_set and tp_options_read made. */
void tp_options_free(tp_options_kind kind, void *options);

/* ------------------------------------------------------------------------------------------------------------------
 * 4. The whole job
 */

typedef struct tp_train_result {
  int epochs;                              /* done, both phases */
  int best_epoch;                          /* 1-based; 0: none */
  double best_val_loss, best_val_accuracy; /* NaN without validation */
  double images_per_s;                     /* of training, median epoch */
  double busy_share;                       /* compute time / wall time of training */
} tp_train_result;

/* Trains as the options say into the run folder. result may be NULL. TP_STOPPED after
 * tp_context_stop, saved and resumable. */
tp_status tp_train(tp_context *context, const tp_train_options *options, tp_train_result *result,
                   tp_error *error) TP_CHECKED;
/* Continues a run from its last checkpoint, bit for bit, with the options saved in its folder. */
tp_status tp_train_resume(tp_context *context, const char *run, tp_train_result *result,
                          tp_error *error) TP_CHECKED;

/* Predicts in the records' order and writes the CSV. */
tp_status tp_predict(tp_context *context, const tp_predict_options *options,
                     tp_error *error) TP_CHECKED;

/* Figures of an evaluation; classes that occur in neither labels nor predictions have support and
 * predicted 0. */
typedef struct tp_class_score {
  const char *name;
  int64_t support, predicted, right;
  double precision, recall, f1; /* NaN where undefined */
} tp_class_score;

typedef struct tp_evaluation {
  int64_t examples;
  double loss;            /* NaN from CSV files */
  double accuracy, top_5; /* top_5: NaN from CSV files */
  double macro_f1;        /* mean over the classes that occur in labels or predictions */
  tp_class_score *classes;
  size_t n_classes;
} tp_evaluation;

/* Fills *evaluation; free it with tp_evaluation_free. */
tp_status tp_evaluate(tp_context *context, const tp_evaluate_options *options,
                      tp_evaluation *evaluation, tp_error *error) TP_CHECKED;
void tp_evaluation_free(tp_evaluation *evaluation);
/* The table that `tepal evaluate` prints. Returns: tp_free. */
tp_status tp_evaluation_text(const tp_evaluation *evaluation, char **text,
                             tp_error *error) TP_CHECKED;

/* What inspect found. faults counts unreadable or mislabelled records, unreadable files, and
 * duplicates across splits. */
typedef struct tp_inspection {
  int64_t files, records, faults;
  char *text; /* the report for people */
} tp_inspection;

/* TP_OK also when there are faults. Free with tp_inspection_free. */
tp_status tp_inspect(tp_context *context, const tp_inspect_options *options,
                     tp_inspection *inspection, tp_error *error) TP_CHECKED;
void tp_inspection_free(tp_inspection *inspection);

/* Writes shards from photos. */
tp_status tp_pack(tp_context *context, const tp_pack_options *options, tp_error *error) TP_CHECKED;

/* Draws flowers by seed and writes them as shards in the Kaggle layout. */
tp_status tp_draw(tp_context *context, const tp_draw_options *options, tp_error *error) TP_CHECKED;

/* What a training would need on a machine that is not here: its real compiler says. */
typedef struct tp_plan_options {
  const char *topology; /* the machine: "v3-8" or "v3:2x2" (TPUs), "h200", "a100:4" (GPUs) */
  const char *compiler; /* path of a PJRT plugin; NULL: libtpu, or the CUDA plugin, is looked for */
  int classes;          /* without data or labels' file: how many; else 0 */
  int64_t examples, val_examples; /* without data: how many; 0: not known */
  bool largest;    /* look for the largest batch that fits: a few compilations more */
  double measure;  /* seconds in which this machine makes batches of the data; 0: it does not */
  double patience; /* seconds that one compilation may take */
  bool json;       /* the answer is a JSON object */
} tp_plan_options;

/* Plans the training that the options describe (their data may be empty) with the context's number
 * of replicas. text (tp_free): for each phase whether it compiles and fits, work, time at best,
 * steps and minutes, the pictures per second that are needed and made. fits: every program does.
 * Errors: TP_ERR_DEVICE: no compiler, or a program that does not compile. */
tp_status tp_plan(tp_context *context, const tp_train_options *train, const tp_plan_options *plan,
                  char **text, bool *fits, tp_error *error) TP_CHECKED;

/* ------------------------------------------------------------------------------------------------------------------
 * 5. Models
 */
typedef struct tp_model tp_model;

/* The networks that can be built; the last pointer is NULL. */
const char *const *tp_model_names(void);
/* The side of the square pictures that a network was made for (any other works, too); 0: there is
 * none of that name. */
int tp_model_size(const char *name);

/* A network with fresh weights (seed) or weights from "imagenet" or a file. classes 0: without the
 * head. */
tp_status tp_model_new(tp_context *context, const char *name, int height, int width, int classes,
                       const char *weights, uint64_t seed, tp_model **model,
                       tp_error *error) TP_CHECKED;
/* The best network of a run (folder) or of a checkpoint file. */
tp_status tp_model_open(tp_context *context, const char *path, tp_model **model,
                        tp_error *error) TP_CHECKED;
void tp_model_free(tp_model *model);

/* Loads weights by name. Strict; skip_mismatch leaves out a head of another size. The model is
 * unchanged on failure. */
tp_status tp_model_load(tp_model *model, const char *path, bool skip_mismatch,
                        tp_error *error) TP_CHECKED;
/* Writes .h5 (Keras' legacy format) or .safetensors, by the name's end. */
tp_status tp_model_save(tp_model *model, const char *path, tp_error *error) TP_CHECKED;
/* Keras' layer table. Returns: tp_free. */
tp_status tp_model_summary(tp_model *model, char **text, tp_error *error) TP_CHECKED;
/* How training by Adam would lie in the CPU's memory, stage by stage: what is kept for the batch,
 * the threads' scratch, gradients and packed weights. last_layers: of the backbone, 0: none, -1:
 * all; batch_statistics: as batch_norm "batch"; memory: as memory_limit, for this plan and the
 * weights; NULL: none. Returns: tp_free. */
tp_status tp_model_plan(tp_model *model, int batch, int last_layers, bool batch_statistics,
                        const char *memory, char **text, tp_error *error) TP_CHECKED;
int tp_model_classes(const tp_model *model);
void tp_model_input(const tp_model *model, int *height, int *width);
/* Class name, or NULL where unknown. Borrowed. */
const char *tp_model_label(const tp_model *model, int label);
/* pixels: float [n, height, width, 3], RGB, 0...255 (the scaling is inside the network; values that
 * look like 0...1 are warned of once). probabilities: [n, classes]. */
tp_status tp_model_predict(tp_model *model, const float *pixels, int64_t n, float *probabilities,
                           tp_error *error) TP_CHECKED;
/* Decodes JPEG or PNG bytes, resizes to the network's input, predicts: probabilities [classes]. */
tp_status tp_model_predict_image(tp_model *model, const void *bytes, size_t size,
                                 float *probabilities, tp_error *error) TP_CHECKED;

/* Sends one batch of drawn colours through the plain loops, the fast CPU kernels and the context's
 * device, and compares the output of every layer. text (tp_free) says who agrees, and where the
 * first difference is; agree: nobody differs. precision: of the device, "float32" or "bf16"; a CPU
 * that has both is looked at in both. */
tp_status tp_model_check(tp_model *model, int batch, const char *precision, char **text,
                         bool *agree, tp_error *error) TP_CHECKED;

/* ------------------------------------------------------------------------------------------------------------------
 * 6. Pretrained weights
 */
typedef struct tp_pretrained {
  const char *name, *file, *checksum, *licence;
  const char *source; /* an address, or a Python package as "name==version" */
  bool cached;        /* it is in the cache folder */
} tp_pretrained;

/* The i-th known file; false when there is none. */
bool tp_pretrained_at(tp_context *context, size_t index, tp_pretrained *pretrained);
/* Makes sure the file is in the cache folder and its checksum is right; fetches it if not. *path:
 * tp_free. */
tp_status tp_pretrained_get(tp_context *context, const char *name, char **path,
                            tp_error *error) TP_CHECKED;

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
