/* exec_bands - expand (1 x 1) and depthwise convolution as one step, band of rows by band of rows;
 * see plan_bands.c
 *
 *   rows of x ──gemm──> rows n0...n1 of the expanded layer (kept from the band before: n0...have)
 * ──depthwise──> rows of y
 *
 * The same chains of multiply-adds as the two steps: the bits are the same, but for the sums over
 * all pixels, which are added band by band.
 */
#include <string.h>

#include "exec.h"
#include "geometry.h"

/* What lies in the band's buffer: rows first...end of the expanded layer. */
struct band {
  float *rows;
  int64_t row; /* floats of a row */
  int64_t first, end;
};

/* Makes rows first...end lie in the buffer. g: m is a row's pixels; a points at row 0 of x. */
static void move_to(const tp__kernels *kernels, struct band *b, const tp__gemm *g, int64_t first,
                    int64_t end)
{
  int64_t kept = b->end > first ? b->end - first : 0;
  memmove(b->rows, b->rows + (first - b->first) * b->row, (size_t)(kept * b->row) * sizeof(float));
  tp__gemm rows = *g;
  rows.m = g->m * (long)(end - first - kept);
  rows.a = g->a + (first + kept) * g->m * g->lda;
  rows.c = b->rows + kept * b->row;
  kernels->gemm(&rows);
  b->first = first;
  b->end = end;
}

static void add_sums(float *sums, const float *more, int64_t c)
{
  for (int64_t i = 0; i < c && sums != NULL; i++) sums[i] += more[i];
}

/* One example: g and v hold everything but the rows. */
static void run_example(const tp__kernels *kernels, const tp__gemm *g, tp__depthwise v,
                        struct band b, int band, float *sums, float *band_sums)
{
  const int height = v.h, rows = v.oh, pad = v.pad_top;
  const int64_t y_row = (int64_t)v.ow * tp__pitch(v.c);
  if (sums != NULL) memset(sums, 0, (size_t)tp__pitch(v.c) * sizeof(float));
  v.x = b.rows;
  v.sums = sums != NULL ? band_sums : NULL;
  for (int y = 0; y < rows; y += band, v.y += band * y_row) {
    v.oh = rows - y < band ? rows - y : band;
    int top = y * v.stride - pad, bottom = top + (v.oh - 1) * v.stride + v.k;
    int first = top > 0 ? top : 0, end = bottom < height ? bottom : height;
    move_to(kernels, &b, g, first, end > b.end ? end : b.end);
    v.pad_top = first - top;
    v.h = (int)(b.end - b.first);
    kernels->depthwise(&v);
    add_sums(sums, band_sums, v.c);
  }
}

void tp__step_expand_depthwise(const tp__frame *f, const tp__step *s)
{
  const tp__plan *plan = f->plan;
  const tp__derived *expand = &plan->derived[s->inner_derived];
  const int64_t *dim = s->inner->shape.dim, x_row = plan->slot[s->in[0]].row;
  tp__gemm g = {.m = (long)dim[2],
                .n = expand->n,
                .k = expand->k,
                .a = tp__operand(f, s, 0),
                .lda = (long)plan->slot[s->in[0]].pitch,
                .packed = tp__derived_at(f, s->inner_derived),
                .bias = tp__operand(f, s, 3),
                .ldc = tp__pitch((long)dim[3]),
                .act = s->inner->attr.act};
  struct band b = {.rows = tp__at_slot(f, s->extra[1]), .row = dim[2] * tp__pitch((long)dim[3])};
  float *band_sums = b.rows + plan->slot[s->extra[1]].row - tp__pitch((long)dim[3]);
  tp__depthwise v = tp__depthwise_geometry(plan, s, &tp__plan_node(plan, s->node->in[1])->shape);
  v.packed = tp__derived_at(f, s->derived);
  v.bias = tp__operand(f, s, 2);
  for (int64_t i = 0; i < f->n; i++) {
    v.y = tp__at_slot(f, s->v) + i * plan->slot[s->v].row;
    float *sums = s->extra[0] == TP__NONE
                      ? NULL
                      : tp__at_slot(f, s->extra[0]) + i * plan->slot[s->extra[0]].row;
    run_example(plan->kernels, &g, v, b, s->band, sums, band_sums);
    g.a += x_row;
  }
}
