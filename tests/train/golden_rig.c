/* golden_rig - see golden_rig.h */
#include "golden_rig.h"

#include "model/weights_load.h"

rig shared;
bool have_golden;

/* ---- set-up ---- */

static int compare_ids(const void *a, const void *b)
{
  return strcmp(tp__catalog_record(shared.catalog, *(const uint32_t *)a)->id,
                tp__catalog_record(shared.catalog, *(const uint32_t *)b)->id);
}

static void open_photos(rig *r)
{
  tp_error err = {0};
  const char *set = getenv("TEPAL_GOLDEN_DATA");
  char *pattern =
      set != NULL
          ? tp__format("%s/tfrecords-jpeg-192x192/train/*.tfrec", set)
          : tp__format("%s/data/tiny10-192/tfrecords-jpeg-192x192/train/*.tfrec", shared_folder());
  const char *const patterns[] = {pattern};
  tp__catalog_options o = {.patterns = patterns, .n_patterns = 1, .need_labels = true};
  assert_ok(tp__catalog_open(&o, r->pool, NULL, &r->catalog, &err));
  free(pattern);
  size_t n = tp__catalog_count(r->catalog);
  r->by_id = calloc(n, sizeof *r->by_id);
  assert_non_null(r->by_id);
  for (size_t i = 0; i < n; i++) r->by_id[i] = (uint32_t)i;
  qsort(r->by_id, n, sizeof *r->by_id, compare_ids);
}

/* The backbone of the golden file, which xz has packed, and the initial head. */
static void read_weights(rig *r)
{
  tp_error err = {0};
  tp__net *net = NULL;
  r->spec =
      (tp__model_spec){.name = "efficientnet-b0", .height = SIDE, .width = SIDE, .classes = LABELS};
  assert_ok(tp__net_build(&r->spec, false, &net, &err));
  assert_ok(tp__net_init(net, 1, &r->weights, &err));
  const char *packed = golden_file("b0_notop.safetensors.xz");
  assert_non_null(packed);
  char folder[] = "/tmp/tepal-golden-XXXXXX", path[64], command[1400];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/b0.safetensors", folder);
  snprintf(command, sizeof command, "xz -dc '%s' > '%s'", packed, path);
  if (system(command) != 0) fail_msg("%s failed", command);
  assert_ok(tp__weights_load(path, net, &r->weights, false, NULL, &err));
  unlink(path);
  rmdir(folder);
  tp__net_free(net);
  npz_shape shape;
  const float *kernel = npz_f4(r->golden, "head_kernel0", &shape);
  assert_int_equal(shape.count, FEATURES * LABELS);
  memcpy(tp__tensors_find(&r->weights, "predictions/kernel")->data, kernel,
         shape.count * sizeof(float));
  memcpy(tp__tensors_find(&r->weights, "predictions/bias")->data,
         npz_f4(r->golden, "head_bias0", NULL), LABELS * sizeof(float));
}

int open_rig(void **state)
{
  (void)state;
  if (getenv("TEPAL_GOLDEN") == NULL && shared_folder() == NULL) return 0;
  const char *path = golden_file("trajectories.npz");
  if (path == NULL) return -1;
  tp_error err = {0};
  rig *r = &shared;
  assert_ok(tp__pool_new(2, &r->pool, &err));
  assert_ok(tp__backend_cpu(r->pool, &r->cpu, &err));
  r->golden = npz_open(path);
  open_photos(r);
  read_weights(r);
  r->pixels = calloc((size_t)BATCH * SIDE * SIDE * 3, sizeof(float));
  tp__buffer_init(&r->bytes, 1 << 24);
  have_golden = r->pixels != NULL;
  return have_golden ? 0 : -1;
}

int close_rig(void **state)
{
  (void)state;
  rig *r = &shared;
  npz_close(r->golden);
  tp__tensors_free(&r->weights);
  tp__catalog_free(r->catalog);
  tp__image_scratch_free(&r->scratch);
  tp__buffer_free(&r->bytes);
  free(r->pixels);
  free(r->by_id);
  if (r->cpu != NULL) r->cpu->free(r->cpu);
  tp__pool_free(r->pool);
  return 0;
}

/* ---- batches ---- */

static uint32_t find(const char *id)
{
  size_t low = 0, high = tp__catalog_count(shared.catalog);
  while (low < high) {
    size_t middle = (low + high) / 2;
    int order = strcmp(tp__catalog_record(shared.catalog, shared.by_id[middle])->id, id);
    if (order == 0) return shared.by_id[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  fail_msg("no photo with the id %s", id);
  return 0;
}

void read_batch(const char *run, size_t step, int side, int32_t labels[BATCH], tp__batch *batch)
{
  tp_error err = {0};
  rig *r = &shared;
  char array[64];
  snprintf(array, sizeof array, "%s:ids", run);
  tp__image_recipe recipe = {.height = side, .width = side};
  for (size_t i = 0; i < BATCH; i++) {
    uint32_t index = find(npz_string(r->golden, array, step * BATCH + i));
    labels[i] = tp__catalog_record(r->catalog, index)->label;
    assert_ok(tp__catalog_read(r->catalog, index, &r->bytes, &err));
    assert_ok(tp__image_prepare(&recipe, r->bytes.data, r->bytes.size, false, (tp__key){{0, 0}},
                                &r->scratch, r->pixels + i * (size_t)(side * side * 3), &err));
  }
  *batch = (tp__batch){.n = BATCH, .pixels = r->pixels, .labels = labels};
}

/* ---- comparing ---- */

void compare(worst *w, const char *what, size_t i, double mine, double wanted, double allowed)
{
  double difference = fabs(mine - wanted);
  if (!(difference <= allowed))
    fail_msg("%s[%zu] is %.9g, wanted %.9g (within %.3g)", what, i, mine, wanted, allowed);
  if (difference / allowed > w->share) w->share = difference / allowed;
  w->compared++;
}

double golden(const char *run, const char *name, size_t i)
{
  char array[96];
  npz_shape shape;
  npz_type type;
  snprintf(array, sizeof array, "%s:%s", run, name);
  const void *values = npz_get(shared.golden, array, &shape, &type);
  assert_true(i < shape.count);
  if (type == NPZ_F8) return ((const double *)values)[i];
  assert_int_equal(type, NPZ_F4);
  return (double)((const float *)values)[i];
}

void compare_step(const char *run, size_t s, const float *losses, const float *weights,
                  const float *scores, const int32_t *labels, double allowed, worst *loss)
{
  double sum = 0;
  int right = 0;
  for (int i = 0; i < BATCH; i++) {
    sum += (double)losses[i] * (weights != NULL ? (double)weights[i] : 1);
    int best = 0;
    for (int c = 1; c < LABELS; c++)
      if (scores[i * LABELS + c] > scores[i * LABELS + best]) best = c;
    right += best == labels[i];
  }
  compare(loss, "loss", s, sum / BATCH, golden(run, "loss", s), allowed);
  if (fabs(right - BATCH * golden(run, "accuracy", s)) > 1.001)
    fail_msg("step %zu: %d right, wanted %g", s, right, BATCH * golden(run, "accuracy", s));
}

tp__tensors read_changed(tp__learner *l)
{
  tp_error err = {0};
  tp__tensors read = {0};
  size_t n = 0;
  const char *const *name = tp__learner_changing(l, &n);
  for (size_t i = 0; i < n; i++) {
    const tp__tensor *w = tp__tensors_find(&shared.weights, name[i]);
    assert_non_null(w);
    assert_ok(tp__tensors_add(&read, name[i], TP__F32, &w->shape, NULL, &err));
  }
  assert_ok(tp__learner_read(l, &read, &err));
  return read;
}

/* ---- tensors after a run ---- */

const char *golden_name(const char *name, char text[96])
{
  bool head = strncmp(name, "predictions/", 12) == 0;
  snprintf(text, 96, "%s%s", head ? "head/" : "", head ? name + 12 : name);
  return text;
}

static const tp__tensor *by_golden_name(const tp__tensors *set, const char *name)
{
  char mine[96];
  for (size_t i = 0; i < set->count; i++)
    if (strcmp(golden_name(set->item[i].name, mine), name) == 0) return &set->item[i];
  fail_msg("%s is not changed", name);
  return NULL;
}

static bool is_meaningful(const char *run, size_t k)
{
  char array[64];
  snprintf(array, sizeof array, "%s:meaningful", run);
  return !npz_has(shared.golden, array) || npz_u1(shared.golden, array, NULL)[k] != 0;
}

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of tensor k; returns the relative difference of the way it went. */
static double compare_tensor(const char *run, size_t k, const tp__tensor *t,
                             const tensor_limits *limits, worst *w)
{
  const float *now = t->data, *then = tp__tensors_find(&shared.weights, t->name)->data;
  size_t n = tp__shape_elements(&t->shape, 0);
  double norm = 0, moved = 0;
  for (size_t i = 0; i < n; i++) {
    norm += (double)now[i] * (double)now[i];
    double d = (double)now[i] - (double)then[i];
    moved += d * d;
  }
  char what[160];
  snprintf(what, sizeof what, "%s: %s: delta_norm", run, t->name);
  double wanted = golden(run, "delta_norm", k);
  compare(w, what, k, sqrt(moved), wanted, limits->delta_norm * wanted);
  snprintf(what, sizeof what, "%s: %s: norm", run, t->name);
  double whole = golden(run, "norm", k);
  compare(w, what, k, sqrt(norm), whole, limits->norm * whole);
  snprintf(what, sizeof what, "%s: %s", run, t->name);
  for (size_t i = 0; i < 16 && i < n; i++)
    compare(w, what, i, (double)now[i], golden(run, "first16", k * 16 + i), limits->first16);
  return fabs(sqrt(moved) - wanted) / wanted;
}

void compare_tensors(const char *run, const tp__tensors *after, const tensor_limits *limits)
{
  npz_shape shape;
  char array[64];
  snprintf(array, sizeof array, "%s:names", run);
  npz_get(shared.golden, array, &shape, NULL);
  assert_int_equal(shape.count, after->count);
  double *delta = calloc(shape.count, sizeof *delta);
  assert_non_null(delta);
  worst w = {0};
  size_t n = 0;
  for (size_t k = 0; k < shape.count; k++) {
    const tp__tensor *t = by_golden_name(after, npz_string(shared.golden, array, k));
    if (is_meaningful(run, k)) delta[n++] = compare_tensor(run, k, t, limits, &w);
  }
  assert_true(n > 0);
  qsort(delta, n, sizeof *delta, by_value);
  if (limits->delta_median > 0)
    compare(&w, "median difference of the ways", n, delta[n / 2], 0, limits->delta_median);
  print_message("%s: %zu tensors within %.2g of the tolerance\n", run, n, w.share);
  free(delta);
}
