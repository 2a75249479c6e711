/* Convolutions of 3 x 3 and stride 1 by fewer multiplications (Winograd's minimal filtering; A.
 * Lavin, S. Gray: Fast Algorithms for Convolutional Neural Networks, 2015).
 *
 *   y = A^T [ (G g G^T) (B^T d B), multiplied number by number, summed over the channels ] A
 *
 * for each tile of side x side outputs: d its window of side + 2, g the kernel. A side of 4 takes
 * 36 multiplications for 16 outputs, a direct convolution 144; a side of 2 takes 16 instead of 36.
 * The sums over the channels are a matrix product, tiles x channels x outputs, for each of the 36
 * (16) places in the window. Blocks of tiles, so that both sides of the products stay near.
 *
 * The transforms evaluate polynomials at points: 0, 1, -1 and infinity for 2; 0, 5/8, -5/8, 3/2,
 * -3/2 and infinity for 4. Textbooks take 0, 1, -1, 2, -2: two to four times this rounding error,
 * which is about twice that of the direct convolution. All constants but the kernel's are exact.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/tiles.h"

enum { TILES = 48, WINDOW_MOST = 36 }; /* of a block; numbers of a window */

/* ---- one dimension ---- */

/* Squares of the points 5/8 and 3/2. */
#define P 0.625f
#define Q 1.5f

TP__INLINE void input_line_4(const tp__vec *d, tp__vec *to)
{
  const tp__vec p2 = tp__all(P * P), q2 = tp__all(Q * Q);
  const tp__vec sum = tp__all(P * P + Q * Q), product = tp__all(P * P * Q * Q);
  const tp__vec even_p = tp__fma(-q2, d[2], d[4]), odd_p = tp__fma(-q2, d[1], d[3]);
  const tp__vec even_q = tp__fma(-p2, d[2], d[4]), odd_q = tp__fma(-p2, d[1], d[3]);
  to[0] = tp__fma(product, d[0], tp__fma(-sum, d[2], d[4]));
  to[1] = tp__fma(tp__all(P), odd_p, even_p);
  to[2] = tp__fma(tp__all(-P), odd_p, even_p);
  to[3] = tp__fma(tp__all(Q), odd_q, even_q);
  to[4] = tp__fma(tp__all(-Q), odd_q, even_q);
  to[5] = tp__fma(product, d[1], tp__fma(-sum, d[3], d[5]));
}

TP__INLINE void output_line_4(const tp__vec *m, tp__vec *y)
{
  const tp__vec even_p = m[1] + m[2], odd_p = m[1] - m[2];
  const tp__vec even_q = m[3] + m[4], odd_q = m[3] - m[4];
  y[0] = (m[0] + even_p) + even_q;
  y[1] = tp__fma(tp__all(Q), odd_q, tp__all(P) * odd_p);
  y[2] = tp__fma(tp__all(Q * Q), even_q, tp__all(P * P) * even_p);
  y[3] = tp__fma(tp__all(Q * Q * Q), odd_q, tp__fma(tp__all(P * P * P), odd_p, m[5]));
}

TP__INLINE void input_line_2(const tp__vec *d, tp__vec *to)
{
  to[0] = d[0] - d[2];
  to[1] = d[1] + d[2];
  to[2] = d[2] - d[1];
  to[3] = d[3] - d[1];
}

TP__INLINE void output_line_2(const tp__vec *m, tp__vec *y)
{
  y[0] = (m[0] + m[1]) + m[2];
  y[1] = (m[1] - m[2]) + m[3];
}

/* ---- two dimensions ---- */

/* Where a tile's outputs go, and how many of them there are. */
typedef struct output_part {
  float *y;
  int rows, columns;
} output_part;

/* act(sum + bias) + residual, from column j on. */
TP__INLINE void finish(const tp__conv *v, const tp__vec *sum, int side, const output_part *part,
                       long j)
{
  const tp__vec bias = v->bias != NULL ? tp__load(v->bias + j) : tp__zero();
  const long line = v->ow * v->y_pitch, to_residual = v->residual != NULL ? v->residual - v->y : 0;
  float *const to = part->y + j;
#define AT (to + a * line + b * v->y_pitch)
#define EACH                                                                                       \
  for (int a = 0; a < part->rows; a++)                                                             \
    for (int b = 0; b < part->columns; b++)
#define ADDED            tp__load(AT + to_residual)
#define SUM              (sum[a * side + b] + bias)
#define STORE(act)       EACH tp__store(AT, act(SUM))
#define STORE_ADDED(act) EACH tp__store(AT, act(SUM) + ADDED)
#define STORE_LAST(act)  EACH tp__store(AT, act(SUM + ADDED))
  if (v->residual == NULL) {
    TP__FOR_ACT(v->act, STORE)
  } else if (v->act_last) {
    TP__FOR_ACT(v->act, STORE_LAST)
  } else {
    TP__FOR_ACT(v->act, STORE_ADDED)
  }
#undef AT
#undef EACH
#undef ADDED
#undef SUM
#undef STORE
#undef STORE_ADDED
#undef STORE_LAST
}

#define WINO_NAME_(name, side) name##_##side
#define WINO_NAME(name, side)  WINO_NAME_(name, side)
#define SIDE                   2
#include "backend/cpu/winograd_tile.inc"
#define SIDE 4
#include "backend/cpu/winograd_tile.inc"

/* ---- the kernel: G g G^T, in double, rounded once ---- */

#define OF_P (1 / (2.0 * P * P * (P * P - Q * Q)))
#define OF_Q (1 / (2.0 * Q * Q * (Q * Q - P * P)))
static const double points_4[6][3] = {
    {1 / ((double)P * P * Q * Q), 0, 0}, {OF_P, P *OF_P, P *P *OF_P},  {OF_P, -P *OF_P, P *P *OF_P},
    {OF_Q, Q *OF_Q, Q *Q *OF_Q},         {OF_Q, -Q *OF_Q, Q *Q *OF_Q}, {0, 0, 1}};
static const double points_2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};

/* Numbers of a vector of columns. */
typedef double columns[TP__V];

static void multiply(const double *point, columns *g, double *to)
{
  for (int l = 0; l < TP__V; l++)
    to[l] = (point[0] * g[0][l] + point[1] * g[1][l]) + point[2] * g[2][l];
}

/* g [3,3] -> the window's numbers, `step` floats apart. */
static void transform_kernel(const double (*point)[3], int in, columns g[3][3], float *to,
                             size_t step)
{
  columns half[3], number;
  for (int i = 0; i < in; i++) {
    for (int kx = 0; kx < 3; kx++) {
      columns column[3];
      for (int ky = 0; ky < 3; ky++) memcpy(column[ky], g[ky][kx], sizeof column[ky]);
      multiply(point[i], column, half[kx]);
    }
    for (int j = 0; j < in; j++, to += step) {
      multiply(point[j], half, number);
      for (int l = 0; l < TP__V; l++) to[l] = (float)number[l];
    }
  }
}

size_t TP__FN(packed_winograd)(int tile, int c, int n)
{
  return (size_t)((tile + 2) * (tile + 2)) * TP__FN(packed_gemm)(c, n);
}

/* As pack_gemm packs, a product for each number of the window. */
void TP__FN(pack_winograd)(const float *kernel, int tile, int c, int n, bool transposed,
                           float *packed)
{
  const long k = transposed ? n : c, outputs = transposed ? c : n, tap = (long)c * n;
  const long row = transposed ? 1 : n, column = transposed ? n : 1;
  const double(*point)[3] = tile == 4 ? points_4 : points_2;
  const size_t step = TP__FN(packed_gemm)(k, outputs);
  for (long first = 0, width; first < outputs; first += width * TP__V) {
    width = panel_width(vectors_of(outputs - first));
    for (long i = 0; i < k; i++) {
      for (long j = 0; j < width; j++, packed += TP__V) {
        columns g[3][3] = {0};
        const long at = first + j * TP__V, end = outputs - at < TP__V ? outputs - at : TP__V;
        for (int t = 0; t < 9; t++) {
          const float *from = kernel + (transposed ? 8 - t : t) * tap + i * row + at * column;
          for (long l = 0; l < end; l++) g[t / 3][t % 3][l] = from[l * column];
        }
        transform_kernel(point, tile + 2, g, packed, step);
      }
    }
  }
}

/* ---- blocks of tiles ---- */

/* Tiles first...first + count of all images', and the two sides of their products. */
typedef struct block {
  long first, count;
  float *in, *out;        /* [window][count] at the pitches of c and n */
  long in_step, out_step; /* from number to number of the window */
} block;

static long tiles_across(int outputs, int tile)
{
  return (outputs + tile - 1) / tile;
}

static long tiles_of(const tp__conv *v)
{
  const int images = v->images > 1 ? v->images : 1;
  return images * tiles_across(v->oh, v->tile) * tiles_across(v->ow, v->tile);
}

/* Equal blocks, whole tiles of the products. */
static long block_size(long tiles)
{
  enum { ROWS = 4 };
  const long blocks = (tiles + TILES - 1) / TILES;
  return ((tiles + blocks - 1) / blocks + ROWS - 1) / ROWS * ROWS;
}

/* A line of the cache more than whole rows, so that the numbers of a window do not meet in the same
 * sets of the cache. */
static long step_of(long tiles, long channels)
{
  return tiles * tp__pitch(channels) + TP__LANES;
}

size_t TP__FN(winograd_scratch)(const tp__conv *v)
{
  const long size = tiles_of(v) < TILES ? block_size(tiles_of(v)) : TILES;
  return (size_t)((v->tile + 2) * (v->tile + 2) * (step_of(size, v->c) + step_of(size, v->n)));
}

/* A vector of channels of the window at (top, left), with zeros outside of the image. */
static void copy_window(const tp__conv *v, const float *x, int top, int left, long c, float *to)
{
  const int in = v->tile + 2;
  for (int i = top; i < top + in; i++)
    for (int j = left; j < left + in; j++, to += TP__V) {
      const bool inside = i >= 0 && i < v->h && j >= 0 && j < v->w;
      tp__store(to, inside ? tp__load_upto(x + ((long)i * v->w + j) * v->x_pitch + c, v->c - c)
                           : tp__zero());
    }
}

static void transform_window(const tp__conv *v, const float *x, int top, int left, float *to,
                             long step)
{
  const int in = v->tile + 2;
  const bool inside = top >= 0 && left >= 0 && top + in <= v->h && left + in <= v->w;
  const long whole = inside ? v->c / TP__V * TP__V : 0;
  void (*const input)(const float *, long, long, long, float *, long) =
      v->tile == 4 ? input_4 : input_2;
  if (whole > 0)
    input(x + ((long)top * v->w + left) * v->x_pitch, v->w * v->x_pitch, v->x_pitch, whole, to,
          step);
  for (long c = whole; c < v->c; c += TP__V) {
    float window[WINDOW_MOST * TP__V];
    copy_window(v, x, top, left, c, window);
    input(window, in * TP__V, TP__V, TP__V, to + c, step);
  }
}

static void transform_block(const tp__conv *v, const block *b)
{
  const long across = tiles_across(v->ow, v->tile), each = across * tiles_across(v->oh, v->tile);
  for (long t = 0; t < b->count; t++) {
    const long image = (b->first + t) / each, at = (b->first + t) % each;
    transform_window(v, v->x + image * v->x_row, (int)(at / across) * v->tile - v->pad_top,
                     (int)(at % across) * v->tile - v->pad_left, b->in + t * tp__pitch(v->c),
                     b->in_step);
  }
}

static void multiply_block(const tp__conv *v, const block *b)
{
  tp__gemm p = {.m = b->count,
                .n = v->n,
                .k = v->c,
                .a = b->in,
                .lda = tp__pitch(v->c),
                .packed = v->packed,
                .c = b->out,
                .ldc = tp__pitch(v->n)};
  for (int i = 0; i < (v->tile + 2) * (v->tile + 2); i++) {
    TP__FN(gemm)(&p);
    p.a += b->in_step;
    p.c += b->out_step;
    p.packed += TP__FN(packed_gemm)(v->c, v->n);
  }
}

static void finish_block(const tp__conv *v, const block *b)
{
  const long across = tiles_across(v->ow, v->tile), each = across * tiles_across(v->oh, v->tile);
  for (long t = 0; t < b->count; t++) {
    const long image = (b->first + t) / each, at = (b->first + t) % each;
    const int y = (int)(at / across) * v->tile, x = (int)(at % across) * v->tile;
    const output_part part = {.y = v->y + image * v->y_row + ((long)y * v->ow + x) * v->y_pitch,
                              .rows = v->oh - y < v->tile ? v->oh - y : v->tile,
                              .columns = v->ow - x < v->tile ? v->ow - x : v->tile};
    const float *m = b->out + t * tp__pitch(v->n);
    if (v->tile == 4)
      output_4(v, m, b->out_step, &part);
    else
      output_2(v, m, b->out_step, &part);
  }
}

void TP__FN(winograd)(const tp__conv *v)
{
  const long tiles = tiles_of(v), size = block_size(tiles);
  const int window = (v->tile + 2) * (v->tile + 2);
  block b = {.in = v->scratch, .in_step = step_of(size, v->c), .out_step = step_of(size, v->n)};
  b.out = b.in + window * b.in_step;
  for (b.first = 0; b.first < tiles; b.first += size) {
    b.count = tiles - b.first < size ? tiles - b.first : size;
    transform_block(v, &b);
    multiply_block(v, &b);
    finish_block(v, &b);
  }
}
