/* checkpoint - see checkpoint.h. Here: the file; the JSON text is made and read in
 * checkpoint_json.c. */
#include "checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint_json.h"
#include "model/weights.h"

static const char stop_prefix[] = "stop_best/";

static bool is_slot(const char *name)
{
  return strncmp(name, "adam/", 5) == 0 || strncmp(name, "sgd/", 4) == 0 ||
         strncmp(name, "ema/", 4) == 0;
}

void tp__identity_free(tp__identity *identity)
{
  if (identity == NULL) return;
  tp__arena_free(&identity->arena);
  *identity = (tp__identity){0};
}

void tp__progress_state_free(tp__progress_state *state)
{
  if (state == NULL) return;
  free(state->history);
  *state = (tp__progress_state){0};
}

tp_status tp__history_add(tp__progress_state *state, const tp__history_row *row, tp_error *err)
{
  if (state->n_history == state->history_capacity) {
    size_t capacity = state->history_capacity == 0 ? 32 : state->history_capacity * 2;
    tp__history_row *grown = realloc(state->history, capacity * sizeof *grown);
    if (grown == NULL) return tp__no_memory(err, capacity * sizeof *grown);
    state->history = grown;
    state->history_capacity = capacity;
  }
  state->history[state->n_history++] = *row;
  return TP_OK;
}

/* Adds a set's tensors without copying what they hold, each name behind a prefix. The names are of
 * `to`, which has room. */
static tp_status borrow(tp__tensors *to, const tp__tensors *from, const char *prefix, tp_error *err)
{
  for (size_t i = 0; from != NULL && i < from->count; i++) {
    tp__tensor *t = &to->item[to->count];
    *t = from->item[i];
    t->name = tp__format("%s%s", prefix, from->item[i].name);
    if (t->name == NULL) return tp__no_memory(err, 64);
    to->count++;
  }
  return TP_OK;
}

static size_t count_of(const tp__tensors *set)
{
  return set != NULL ? set->count : 0;
}

tp_status tp__checkpoint_write(const char *path, const tp__identity *identity,
                               const tp__progress_state *progress, const tp__tensors *weights,
                               const tp__tensors *slots, const tp__tensors *stop_best,
                               tp_error *err)
{
  tp__tensors all = {0};
  char *metadata = NULL;
  size_t count = count_of(weights) + count_of(slots) + count_of(stop_best);
  tp_status status = tp__checkpoint_json_make(identity, progress, &metadata, err);
  if (status == TP_OK && (all.item = tp__calloc(count, sizeof *all.item, err)) == NULL)
    status = TP_ERR_INTERNAL;
  if (status == TP_OK) status = borrow(&all, weights, "", err);
  if (status == TP_OK) status = borrow(&all, slots, "", err);
  if (status == TP_OK) status = borrow(&all, stop_best, stop_prefix, err);
  if (status == TP_OK) status = tp__weights_write_safetensors(path, &all, metadata, err);
  for (size_t i = 0; i < all.count; i++) free((void *)(uintptr_t)all.item[i].name);
  free(all.item);
  free(metadata);
  return status;
}

/* Moves the tensors of the file into the sets they belong to. */
static tp_status sort_out(tp__tensors *all, tp__tensors *weights, tp__tensors *slots,
                          tp__tensors *stop_best, tp_error *err)
{
  tp_status status = TP_OK;
  for (size_t i = 0; status == TP_OK && i < all->count; i++) {
    tp__tensor *f = &all->item[i];
    const char *name = f->name;
    tp__tensors *to = weights;
    if (strncmp(name, stop_prefix, sizeof stop_prefix - 1) == 0) {
      to = stop_best;
      name += sizeof stop_prefix - 1;
    } else if (is_slot(name)) {
      to = slots;
    }
    if (to == NULL) continue;
    tp__tensor *t = NULL;
    status = tp__tensors_add(to, name, f->dtype, &f->shape, &t, err);
    if (status != TP_OK) break;
    free(t->data);
    t->data = f->data;
    f->data = NULL;
  }
  return status;
}

tp_status tp__checkpoint_read(const char *path, tp__identity *identity,
                              tp__progress_state *progress, tp__tensors *weights,
                              tp__tensors *slots, tp__tensors *stop_best, tp_error *err)
{
  tp__tensors all = {0};
  tp__buffer metadata;
  tp__buffer_init(&metadata, (size_t)100 << 20);
  const char *format = NULL;
  tp_status status = tp__weights_read(path, &all, &format, &metadata, err);
  if (status == TP_OK && (strcmp(format, "safetensors") != 0 || metadata.size == 0))
    status =
        tp__fail(err, TP_ERR_DATA,
                 "%s: holds weights but is no checkpoint of tepal (give it as --weights)", path);
  if (status == TP_OK) {
    status = tp__buffer_add(&metadata, "", 1, err);
    if (status == TP_OK)
      status = tp__checkpoint_json_read((const char *)metadata.data, identity, progress, err);
    if (status != TP_OK) status = tp__at(err, status, "%s", path);
  }
  if (status == TP_OK) status = sort_out(&all, weights, slots, stop_best, err);
  if (status != TP_OK) {
    tp__identity_free(identity);
    if (progress != NULL) tp__progress_state_free(progress);
    if (weights != NULL) tp__tensors_free(weights);
    if (slots != NULL) tp__tensors_free(slots);
    if (stop_best != NULL) tp__tensors_free(stop_best);
  }
  tp__tensors_free(&all);
  tp__buffer_free(&metadata);
  return status;
}
