/* Proves that Winograd's convolutions equal plain loops, forward and as the gradient of the input,
 * at every kind of border, for every instruction set; that AVX2 and AVX-512 give the same bits and
 * examples together those of each alone; and that padding channels (NaN here) reach no result.
 *
 * Expected numbers: sums in double. The tolerance is a share of the largest sum of magnitudes of
 * any output: a tile's outputs are made of the same numbers, so that a small one has the rounding
 * of the large ones. It is 2e-7 with tiles of 2, three times that with tiles of 4, whose numbers
 * the last transform multiplies by up to (27/8)^2. Hostile shapes: images smaller than a window, no
 * padding and more of it than a kernel reaches, one channel more than whole vectors, blocks of all
 * sizes.
 */
#include "kernel_testing.h"

typedef struct shape {
  int h, w, c, n, top, left, bottom, right; /* padding */
  int images, act;                          /* + LAST: after the residual */
  bool bias, residual;
  long more; /* channels between pixels, pixels between examples */
} shape;
enum { LAST = 16 };

static const shape shapes[] = {
    {8, 8, 16, 16, 1, 1, 1, 1, 1, TP__ACT_NONE, false, false, 0},
    {12, 12, 64, 48, 1, 1, 1, 1, 4, TP__ACT_RELU, true, false, 0},
    {13, 11, 17, 33, 1, 1, 1, 1, 3, TP__ACT_RELU6, true, true, 0},
    {6, 6, 100, 80, 1, 1, 1, 1, 4, TP__ACT_RELU + LAST, true, true, 0},
    {7, 9, 20, 50, 0, 0, 0, 0, 2, TP__ACT_SWISH, true, false, 16},
    {30, 33, 16, 24, 1, 0, 1, 2, 1, TP__ACT_NONE, true, true, 32}, /* several blocks */
    {5, 6, 31, 12, 2, 2, 2, 2, 2, TP__ACT_SIGMOID, false, true, 0},
    {1, 1, 40, 20, 1, 1, 1, 1, 5, TP__ACT_NONE, true, false, 0},
    {2, 3, 16, 16, 4, 3, 5, 4, 1, TP__ACT_NONE, true, false, 0}, /* padding alone */
    {3, 3, 1, 1, 0, 0, 0, 0, 1, TP__ACT_NONE, false, false, 0},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* What both ways read and write. */
typedef struct setting {
  tp__conv v;
  float *x, *kernel, *bias, *residual; /* kernel: [3,3,c,n], or [3,3,n,c] when transposed */
  bool transposed;
} setting;

static float *examples(uint32_t stream, int count, long pixels, long c, long pitch, long row)
{
  float *x = floats((size_t)(count * row));
  for (long i = 0; i < count * row; i++)
    x[i] = i % row / pitch < pixels && i % row % pitch < c ? random_at(stream, (size_t)i) : NAN;
  return x;
}

static setting setting_of(const shape *s, int tile, bool transposed)
{
  tp__conv v = {.images = s->images,
                .h = s->h,
                .w = s->w,
                .c = s->c,
                .oh = s->h + s->top + s->bottom - 2,
                .ow = s->w + s->left + s->right - 2,
                .n = s->n,
                .kh = 3,
                .kw = 3,
                .stride = 1,
                .pad_top = s->top,
                .pad_left = s->left,
                .x_pitch = tp__pitch(s->c) + s->more,
                .y_pitch = tp__pitch(s->n) + s->more,
                .act = (tp__act)(s->act % LAST),
                .act_last = s->act >= LAST,
                .tile = tile};
  v.x_row = ((long)v.h * v.w + s->more) * v.x_pitch;
  v.y_row = ((long)v.oh * v.ow + s->more) * v.y_pitch;
  setting t = {.v = v, .transposed = transposed};
  t.x = examples(1, v.images, (long)v.h * v.w, v.c, v.x_pitch, v.x_row);
  t.kernel = random_floats(2, 9 * (size_t)v.c * (size_t)v.n);
  t.bias = random_rows(3, 1, v.n, tp__pitch(v.n), 0);
  t.residual = examples(4, v.images, (long)v.oh * v.ow, v.n, v.y_pitch, v.y_row);
  t.v.x = t.x;
  t.v.bias = s->bias ? t.bias : NULL;
  t.v.residual = s->residual ? t.residual : NULL;
  return t;
}

static void setting_end(setting *t)
{
  free(t->x);
  free(t->kernel);
  free(t->bias);
  free(t->residual);
}

static float weight_at(const setting *t, int tap, int c, int n)
{
  return t->transposed ? t->kernel[((long)(8 - tap) * t->v.n + n) * t->v.c + c]
                       : t->kernel[((long)tap * t->v.c + c) * t->v.n + n];
}

/* The sum of output (y, x), and its magnitudes. */
static chain sum_at(const setting *t, int image, int y, int x, int n)
{
  const tp__conv *v = &t->v;
  chain s = chain_from(false, v->bias != NULL ? v->bias[n] : 0);
  for (int tap = 0; tap < 9; tap++) {
    int iy = y - v->pad_top + tap / 3, ix = x - v->pad_left + tap % 3;
    if (iy < 0 || ix < 0 || iy >= v->h || ix >= v->w) continue;
    const float *pixel = v->x + image * v->x_row + ((long)iy * v->w + ix) * v->x_pitch;
    for (int c = 0; c < v->c; c++) chain_add(&s, pixel[c], weight_at(t, tap, c, n));
  }
  return s;
}

static double largest_size(const setting *t)
{
  double most = 0;
  for (int i = 0; i < t->v.images; i++)
    for (int o = 0; o < t->v.oh * t->v.ow; o++)
      for (int n = 0; n < t->v.n; n++)
        most = fmax(most, sum_at(t, i, o / t->v.ow, o % t->v.ow, n).size);
  return most;
}

/* Returns the largest difference as a share of the tolerance. */
static double compare(const setting *t, const float *y, double size, const char *what)
{
  const tp__conv *v = &t->v;
  double worst = 0;
  for (int i = 0; i < v->images; i++)
    for (int o = 0; o < v->oh * v->ow; o++)
      for (int n = 0; n < v->n; n++) {
        const long at = i * v->y_row + (long)o * v->y_pitch + n;
        const double sum = sum_at(t, i, o / v->ow, o % v->ow, n).sum;
        const double more = v->residual != NULL ? v->residual[at] : 0;
        const double want = v->act_last ? act_of(v->act, sum + more) : act_of(v->act, sum) + more;
        const double slack = (v->tile == 4 ? 6e-7 : 2e-7) * size + 2e-6 * fabs(want);
        if (!(fabs(y[at] - want) <= slack))
          fail_msg("%s: example %d, pixel %d, channel %d: got %.9g, wanted %.9g", what, i, o, n,
                   (double)y[at], want);
        worst = fmax(worst, fabs(y[at] - want) / slack);
      }
  return worst;
}

/* The outputs by one table. */
static float *run(const tp__kernels *k, const setting *t)
{
  tp__conv v = t->v;
  const int c = t->transposed ? v.n : v.c, n = t->transposed ? v.c : v.n;
  size_t size = k->packed_winograd(v.tile, v.c, v.n), scratch = k->winograd_scratch(&v);
  float *packed = floats(size), *y = floats((size_t)(v.images * v.y_row));
  v.scratch = floats(scratch);
  for (size_t i = 0; i < size; i++) packed[i] = NAN; /* everything must be written */
  for (size_t i = 0; i < scratch; i++) v.scratch[i] = NAN;
  for (long i = 0; i < v.images * v.y_row; i++) y[i] = NAN;
  k->pack_winograd(t->kernel, v.tile, c, n, t->transposed, packed);
  v.packed = packed;
  v.y = y;
  k->winograd(&v);
  free(packed);
  free(v.scratch);
  return y;
}

static void check_way(const tables *all, int tile, bool transposed)
{
  double worst = 0;
  for (int i = 0; i < SHAPES; i++) {
    setting t = setting_of(&shapes[i], tile, transposed);
    const double size = largest_size(&t);
    same_bits same = {NULL};
    for (int k = 0; k < all->count; k++) {
      char what[80];
      snprintf(what, sizeof what, "shape %d, tiles of %d, %s", i, tile, all->table[k]->name);
      float *y = run(all->table[k], &t);
      worst = fmax(worst, compare(&t, y, size, what));
      const long pixels = (long)t.v.oh * t.v.ow; /* the first example's */
      assert_same_bits(&same, all->table[k], y, pixels, t.v.n, t.v.y_pitch, what);
      free(y);
    }
    same_bits_end(&same);
    setting_end(&t);
  }
  print_message("tiles of %d%s: largest difference %.2f of the tolerance\n", tile,
                transposed ? ", transposed" : "", worst);
}

static void equals_plain_loops(void **state)
{
  (void)state;
  const tables t = usable_tables();
  for (int way = 0; way < 4; way++) check_way(&t, way % 2 == 0 ? 2 : 4, way / 2 == 1);
}

static void examples_together_or_alone(void **state)
{
  (void)state;
  const tables sets = usable_tables();
  for (int i = 0; i < SHAPES * sets.count; i++) {
    const tp__kernels *k = sets.table[i % sets.count];
    setting t = setting_of(&shapes[i / sets.count], 4, false);
    float *all = run(k, &t);
    const int images = t.v.images;
    t.v.images = 1;
    for (int e = 0; e < images; e++) {
      float *one = run(k, &t);
      for (long p = 0; p < (long)t.v.oh * t.v.ow; p++)
        assert_memory_equal(one + p * t.v.y_pitch, all + e * t.v.y_row + p * t.v.y_pitch,
                            (size_t)t.v.n * sizeof(float));
      free(one);
      t.v.x += t.v.x_row;
      if (t.v.residual != NULL) t.v.residual += t.v.y_row;
    }
    free(all);
    setting_end(&t);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equals_plain_loops),
      cmocka_unit_test(examples_together_or_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
