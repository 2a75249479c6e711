/* h5_read - the parent's side of reading and writing HDF5: starts the child, checks what it sends;
 * see h5_wire.h */
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "h5_wire.h"

/* A child's message, with its text terminated. */
typedef struct message {
  tp__h5_head head;
  char text[TP__H5_TEXT_MAX + 1];
} message;

static tp_status nonsense(tp_error *err)
{
  return tp__fail(err, TP_ERR_DATA,
                  "not a readable HDF5 file (the HDF5 library went astray on it)");
}

static tp_status get_bytes(tp__child *c, void *data, size_t size, tp_error *err)
{
  tp_status status = tp__child_read(c, data, size, err);
  if (status == TP_OK) return TP_OK;
  char how[256];
  snprintf(how, sizeof how, "%.200s", err != NULL ? err->text : "");
  return tp__fail(err, TP_ERR_DATA, "not a readable HDF5 file (the HDF5 library %s on it)", how);
}

/* Reads and checks one head and its text. ERROR becomes the error. */
static tp_status get_message(tp__child *c, message *m, tp_error *err)
{
  TP__TRY(get_bytes(c, &m->head, sizeof m->head, err));
  const tp__h5_head *h = &m->head;
  if (h->magic != TP__H5_MAGIC || h->kind > TP__H5_END || h->text_size > TP__H5_TEXT_MAX ||
      h->dtype > TP__BF16 || h->rank < 0 || h->rank > TP__RANK_MAX || h->zero != 0)
    return nonsense(err);
  for (int i = 0; i < h->rank; i++)
    if (h->dim[i] < 0) return nonsense(err);
  TP__TRY(get_bytes(c, m->text, h->text_size, err));
  m->text[h->text_size] = '\0';
  if (h->kind != TP__H5_ERROR) return TP_OK;
  for (char *p = m->text; *p != '\0'; p++)
    if (*p < ' ' || *p > '~') *p = '?';
  return tp__fail(err, TP_ERR_DATA, "%s", m->text);
}

/* "efficientnet/stem_conv/kernel:0" -> "stem_conv/kernel", depthwise_kernel -> kernel. In place;
 * returns the start. */
static const char *canonical(char *name)
{
  size_t n = strlen(name);
  if (n > 2 && strcmp(name + n - 2, ":0") == 0) name[n - 2] = '\0';
  char *last = strrchr(name, '/');
  if (last == NULL || last == name) return name;
  if (strcmp(last + 1, "depthwise_kernel") == 0) memmove(last + 1, "kernel", sizeof "kernel");
  char *start = last - 1;
  while (start > name && start[-1] != '/') start--;
  return start;
}

static tp_status get_tensor(tp__child *c, message *m, tp__weights_sink *sink, tp_error *err)
{
  char stored[80];
  const tp__h5_head *h = &m->head;
  tp__shape shape = tp__shape_make(h->rank, h->dim);
  tp__tensor *t = NULL;
  tp__printable(stored, m->text, h->text_size);
  const char *name = canonical(m->text);
  tp_status status =
      tp__weights_add(sink, name, strlen(name), (tp__dtype)h->dtype, &shape, &t, err);
  if (status != TP_OK) return tp__at(err, status, "%s", stored);
  if (h->bytes != tp__tensor_bytes(t)) return nonsense(err);
  return get_bytes(c, t->data, (size_t)h->bytes, err);
}

static tp_status receive(tp__child *c, tp__weights_sink *sink, const char **format, tp_error *err)
{
  message m;
  TP__TRY(get_message(c, &m, err));
  if (m.head.kind != TP__H5_FORMAT || m.head.bytes != 0) return nonsense(err);
  *format = strcmp(m.text, "keras-3") == 0 ? "keras-3" : "keras-h5";
  for (;;) {
    TP__TRY(get_message(c, &m, err));
    if (m.head.kind == TP__H5_END) return TP_OK;
    if (m.head.kind != TP__H5_TENSOR) return nonsense(err);
    TP__TRY(get_tensor(c, &m, sink, err));
  }
}

tp_status tp__h5_read(const tp__h5_source *source, tp__weights_sink *sink, const char **format,
                      tp_error *err)
{
  /* Measured: a 17 MB file takes 0.1 s and, besides its largest array, about 10 MB. */
  unsigned seconds = 20 + (unsigned)(source->bytes >> 22);
  tp__h5_reading job = {source, sink->bytes_left};
  tp__child_limits limits = {.memory =
                                 (UINT64_C(256) << 20) + 2 * source->bytes + 2 * sink->bytes_left,
                             .cpu_seconds = seconds,
                             .wall_seconds = 3 * seconds};
  tp_error own;
  if (err == NULL) err = &own;
  tp__child c;
  TP__TRY(tp__child_start(&c, tp__h5_read_body, &job, source->fd, &limits, err));
  tp_status status = receive(&c, sink, format, err);
  tp__child_end(&c);
  return status;
}

/* ---- writing ---- */

static tp_status receive_image(tp__child *c, tp__writer *w, tp_error *err)
{
  message m;
  TP__TRY(get_message(c, &m, err));
  if (m.head.kind != TP__H5_IMAGE) return nonsense(err);
  enum { BLOCK = 1 << 20 };
  void *block = tp__calloc(BLOCK, 1, err);
  if (block == NULL) return TP_ERR_INTERNAL;
  tp_status status = TP_OK;
  for (uint64_t left = m.head.bytes; status == TP_OK && left > 0;) {
    size_t n = left < BLOCK ? (size_t)left : BLOCK;
    status = tp__child_read(c, block, n, err);
    if (status == TP_OK) status = tp__writer_write(w, block, n, err);
    left -= n;
  }
  free(block);
  if (status != TP_OK) return status;
  TP__TRY(get_message(c, &m, err));
  return m.head.kind == TP__H5_END ? TP_OK : nonsense(err);
}

/* The child builds the file in memory, so that a full disk is the writer's matter and not
 * libhdf5's. */
static tp_status write_through(tp__writer *w, tp__h5_writing *job, tp_error *err)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < job->set->count; i++) bytes += tp__tensor_bytes(&job->set->item[i]);
  tp__child_limits limits = {
      .memory = (UINT64_C(256) << 20) + 4 * bytes, .cpu_seconds = 600, .wall_seconds = 3600};
  tp__child c;
  TP__TRY(tp__child_start(&c, tp__h5_write_body, job, -1, &limits, err));
  tp_status status = receive_image(&c, w, err);
  tp__child_end(&c);
  return status == TP_ERR_DATA ? tp__at(err, TP_ERR_INTERNAL, "writing HDF5") : status;
}

tp_status tp__weights_write_h5(const char *path, const tp__tensors *set, const char *const *layers,
                               size_t n_layers, tp_error *err)
{
  tp__h5_writing job = {set, layers, n_layers};
  tp_error own;
  if (err == NULL) err = &own;
  tp__writer w;
  TP__TRY(tp__writer_open(&w, path, err));
  tp_status status = write_through(&w, &job, err);
  if (status == TP_OK) return tp__writer_commit(&w, err);
  tp__writer_cancel(&w);
  return status == TP_ERR_OUTPUT ? status : tp__at(err, status, "%s", path);
}
