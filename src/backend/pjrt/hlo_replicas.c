/* hlo_replicas - sums and moments over all replicas; see hlo.h
 *
 * Sums wait until one of them is needed, then all that wait go together in one all_reduce.
 */
#include <stdlib.h>

#include "hlo.h"

static void put_groups(tp__hlo *w)
{
  tp__hlo_put(w, "{replica_groups = dense<[[");
  for (int i = 0; i < w->options->replicas; i++) tp__hlo_put(w, i > 0 ? ", %d" : "%d", i);
  tp__hlo_put(w, "]]> : tensor<1x%dxi64>", w->options->replicas);
}

static void put_types(tp__hlo *w, const tp__hlo_value *v, size_t count)
{
  tp__hlo_put(w, "(");
  for (size_t i = 0; i < count; i++) {
    if (i > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_type(w, v[i]);
  }
  tp__hlo_put(w, ")");
}

/* Each of the values (f32) becomes its sum over all replicas. */
static void sum_over_replicas(tp__hlo *w, tp__hlo_value *v, size_t count)
{
  int32_t id = w->next;
  w->next += 4;
  tp__hlo_put(w,
              count > 1 ? "    %%%d:%zu = \"stablehlo.all_reduce\"("
                        : "    %%%d = \"stablehlo.all_reduce\"(",
              (int)id, count);
  for (size_t i = 0; i < count; i++) {
    if (i > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_value(w, v[i]);
  }
  tp__hlo_put(w,
              ") ({\n    ^bb0(%%%d: tensor<f32>, %%%d: tensor<f32>):\n"
              "      %%%d = stablehlo.add %%%d, %%%d : tensor<f32>\n"
              "      stablehlo.return %%%d : tensor<f32>\n    }) ",
              (int)id + 1, (int)id + 2, (int)id + 3, (int)id + 1, (int)id + 2, (int)id + 3);
  put_groups(w);
  tp__hlo_put(w, "} : ");
  put_types(w, v, count);
  tp__hlo_put(w, " -> ");
  if (count > 1)
    put_types(w, v, count);
  else
    tp__hlo_put_type(w, v[0]);
  tp__hlo_put_location(w);
  for (size_t i = 0; i < count; i++) {
    v[i].id = id;
    v[i].part = count > 1 ? (int32_t)i : -1;
  }
}

void tp__hlo_total(tp__hlo *w)
{
  const tp__shape one = {.rank = 1, .dim = {1}};
  if (tp__hlo_is(w->total)) return;
  tp__hlo_value valid = tp__hlo_convert(w, w->valid, TP__HLO_F32);
  tp__hlo_value some = tp__hlo_binary(w, "minimum", valid, tp__hlo_like(w, valid, 1));
  tp__hlo_value pair[2];
  pair[0] = tp__hlo_reshape(w, valid, &one);
  pair[1] = tp__hlo_reshape(w, some, &one);
  w->total = tp__hlo_concat(w, pair, 2, 0);
  sum_over_replicas(w, &w->total, 1);
}

/* A number of w->total, f32. */
static tp__hlo_value of_total(tp__hlo *w, int64_t i)
{
  const tp__shape scalar = {0};
  tp__hlo_total(w);
  return tp__hlo_reshape(w, tp__hlo_slice(w, w->total, &i, (int64_t[]){i + 1}, NULL), &scalar);
}

tp__hlo_value tp__hlo_examples(tp__hlo *w)
{
  tp__hlo_value count = w->own || w->options->replicas == 1
                            ? tp__hlo_convert(w, w->valid, TP__HLO_F32)
                            : of_total(w, 0);
  return tp__hlo_binary(w, "maximum", count, tp__hlo_like(w, count, 1));
}

/* [C]: row of [R,3,C] by replica: [R,C]. */
static tp__hlo_value gathered(tp__hlo *w, tp__hlo_value all, int64_t row)
{
  const int64_t *dim = all.shape.dim;
  tp__shape shape = tp__shape_make(2, (int64_t[]){dim[0], dim[2]});
  all = tp__hlo_slice(w, all, (int64_t[]){0, row, 0}, (int64_t[]){dim[0], row + 1, dim[2]}, NULL);
  return tp__hlo_reshape(w, all, &shape);
}

static tp__hlo_value gather(tp__hlo *w, tp__hlo_value v)
{
  tp__hlo_value all = v;
  all.id = w->next++;
  all.shape.dim[0] = w->options->replicas;
  tp__hlo_put(w, "    %%%d = \"stablehlo.all_gather\"(", (int)all.id);
  tp__hlo_put_value(w, v);
  tp__hlo_put(w, ") ");
  put_groups(w);
  tp__hlo_put(w, ", all_gather_dim = 0 : i64} : ");
  put_types(w, &v, 1);
  tp__hlo_put(w, " -> ");
  tp__hlo_put_type(w, all);
  tp__hlo_put_location(w);
  return all;
}

/* The moments [2,C] of all examples, from those of each replica's and how many it has: each
 * replica's deviations are about its own mean, so that nothing is lost. */
static tp__hlo_value moments_of_all(tp__hlo *w, tp__hlo_value own)
{
  const int64_t channels = own.shape.dim[1];
  tp__shape row = tp__shape_make(2, (int64_t[]){1, channels});
  tp__shape block = tp__shape_make(3, (int64_t[]){1, 3, channels});
  tp__hlo_value valid = tp__hlo_convert(w, w->valid, TP__HLO_F32);
  tp__hlo_value rows[] = {own, tp__hlo_broadcast(w, valid, &row, NULL)};
  tp__hlo_value all = gather(w, tp__hlo_reshape(w, tp__hlo_concat(w, rows, 2, 0), &block));
  tp__hlo_value mean = gathered(w, all, 0), count = gathered(w, all, 2);
  tp__hlo_value sum = tp__hlo_sum_to_last(w, count);
  sum = tp__hlo_binary(w, "maximum", sum, tp__hlo_like(w, sum, 1));
  tp__hlo_value middle = tp__hlo_div(w, tp__hlo_sum_to_last(w, tp__hlo_mul(w, mean, count)), sum);
  tp__hlo_value d = tp__hlo_sub(w, mean, tp__hlo_channels(w, middle, mean));
  tp__hlo_value squares = gathered(w, all, 1);
  squares = tp__hlo_add(w, squares, tp__hlo_mul(w, d, d));
  squares = tp__hlo_sum_to_last(w, tp__hlo_mul(w, squares, count));
  tp__hlo_value pair[2];
  pair[0] = tp__hlo_reshape(w, middle, &row);
  pair[1] = tp__hlo_reshape(w, tp__hlo_div(w, squares, sum), &row);
  return tp__hlo_concat(w, pair, 2, 0);
}

/* Local statistics: the mean of the moments of those replicas that have examples. */
static tp__hlo_value weighted_moments(tp__hlo *w, tp__hlo_value own)
{
  tp__hlo_value valid = tp__hlo_convert(w, w->valid, TP__HLO_F32);
  tp__hlo_value some = tp__hlo_binary(w, "minimum", valid, tp__hlo_like(w, valid, 1));
  tp__hlo_value replicas = of_total(w, 1);
  replicas = tp__hlo_binary(w, "maximum", replicas, tp__hlo_like(w, replicas, 1));
  return tp__hlo_mul(w, own, tp__hlo_spread(w, tp__hlo_div(w, some, replicas), own));
}

static bool is_moments(const tp__hlo *w, tp__value v)
{
  return w->g->node[v].op == TP__OP_BATCH_MOMENTS;
}

static size_t collect(tp__hlo *w, tp__hlo_value *sum)
{
  size_t count = 0;
  for (tp__value v = 0; v < w->g->count; v++) {
    tp__hlo_slot *s = &w->slot[v];
    if (!s->pending) continue;
    if (w->options->replicas == 1)
      s->all = s->own;
    else if (!is_moments(w, v))
      sum[count++] = s->own;
    else if (w->options->local_statistics)
      sum[count++] = weighted_moments(w, s->own);
    else
      s->all = moments_of_all(w, s->own);
  }
  return count;
}

void tp__hlo_join(tp__hlo *w)
{
  size_t count = 0;
  const char *where = w->where;
  tp__hlo_value *sum = tp__calloc((size_t)w->g->count, sizeof *sum, w->err);
  if (sum == NULL) {
    if (w->status == TP_OK) w->status = TP_ERR_INTERNAL;
    return;
  }
  w->where = "replicas";
  count = collect(w, sum);
  if (count > 0) sum_over_replicas(w, sum, count);
  count = 0;
  for (tp__value v = 0; v < w->g->count; v++) {
    tp__hlo_slot *s = &w->slot[v];
    bool summed = w->options->replicas > 1 && (!is_moments(w, v) || w->options->local_statistics);
    if (s->pending && summed) s->all = sum[count++];
    s->pending = false;
  }
  w->where = where;
  free(sum);
}
