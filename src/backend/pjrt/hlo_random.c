/* hlo_random - what is drawn from each example's key: numbers, dropout, mirrors; see hlo.h
 *
 * Philox 4x32 with 10 rounds as in base/rng.h, the same bits as on the host: block j / 4 of counter
 * (j / 4, draw, 0, 0) gives the words of elements j...j + 3.
 */
#include <math.h>

#include "base/rng.h"
#include "hlo_emitters.h"

/* 32 x 32 -> 64 bits: the halves of word times factor. */
static void multiply(tp__hlo *w, tp__hlo_value word, uint32_t factor, tp__hlo_value *high,
                     tp__hlo_value *low)
{
  tp__hlo_value wide = tp__hlo_convert(w, word, TP__HLO_U64);
  wide = tp__hlo_mul(w, wide, tp__hlo_like(w, wide, factor));
  *low = tp__hlo_convert(w, wide, TP__HLO_U32);
  *high = tp__hlo_convert(
      w, tp__hlo_binary(w, "shift_right_logical", wide, tp__hlo_like(w, wide, 32)), TP__HLO_U32);
}

static tp__hlo_value exclusive(tp__hlo *w, tp__hlo_value a, tp__hlo_value b, tp__hlo_value c)
{
  return tp__hlo_binary(w, "xor", tp__hlo_binary(w, "xor", a, b), c);
}

/* word: the counter, then the random words; all [N,blocks]. */
static void philox(tp__hlo *w, tp__hlo_value key[2], tp__hlo_value word[4])
{
  static const uint32_t step[2] = {0x9E3779B9u, 0xBB67AE85u};
  for (int round = 0; round < 10; round++) {
    tp__hlo_value high[2], low[2];
    multiply(w, word[0], 0xD2511F53u, &high[0], &low[0]);
    multiply(w, word[2], 0xCD9E8D57u, &high[1], &low[1]);
    word[0] = exclusive(w, high[1], word[1], key[0]);
    word[2] = exclusive(w, high[0], word[3], key[1]);
    word[1] = low[1];
    word[3] = low[0];
    for (int i = 0; i < 2 && round < 9; i++)
      key[i] = tp__hlo_add(w, key[i], tp__hlo_constant_u32(w, &key[i].shape, step[i]));
  }
}

tp__hlo_value tp__hlo_words(tp__hlo *w, tp__hlo_value keys, uint32_t draw, int64_t blocks)
{
  const int64_t rows = keys.shape.dim[0];
  tp__shape shape = tp__shape_make(2, (int64_t[]){rows, blocks});
  tp__shape one = tp__shape_make(3, (int64_t[]){rows, blocks, 1});
  tp__shape flat = tp__shape_make(2, (int64_t[]){rows, blocks * 4});
  tp__hlo_value key[2], word[4];
  for (int64_t i = 0; i < 2; i++)
    key[i] = tp__hlo_broadcast(
        w, tp__hlo_slice(w, keys, (int64_t[]){0, i}, (int64_t[]){rows, i + 1}, NULL), &shape,
        (int64_t[]){0, 1});
  word[0] = tp__hlo_iota(w, TP__HLO_U32, &shape, 1);
  word[1] = tp__hlo_constant_u32(w, &shape, draw);
  word[2] = word[3] = tp__hlo_constant_u32(w, &shape, 0);
  philox(w, key, word);
  for (int i = 0; i < 4; i++) word[i] = tp__hlo_reshape(w, word[i], &one);
  return tp__hlo_reshape(w, tp__hlo_concat(w, word, 4, 2), &flat);
}

tp__hlo_value tp__hlo_word(tp__hlo *w, tp__hlo_value keys, uint32_t draw)
{
  const int64_t rows = keys.shape.dim[0];
  tp__shape shape = tp__shape_make(1, &rows);
  tp__hlo_value word = tp__hlo_words(w, keys, draw, 1);
  word = tp__hlo_slice(w, word, (int64_t[]){0, 0}, (int64_t[]){rows, 1}, NULL);
  return tp__hlo_reshape(w, word, &shape);
}

tp__hlo_value tp__hlo_dropout(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_float(w, n, 0), keys = tp__hlo_operand(w, n, 1);
  const int64_t rows = x.shape.dim[0];
  const float rate = n->attr.f[0];
  int64_t elements = n->attr.flag ? 1 : (int64_t)tp__shape_elements(&x.shape, rows) / rows;
  tp__hlo_value word =
      tp__hlo_words(w, keys, TP__DRAW_DROPOUT | n->attr.draw << 8, (elements + 3) / 4);
  word = tp__hlo_slice(w, word, (int64_t[]){0, 0}, (int64_t[]){rows, elements}, NULL);
  /* uniform = (word >> 8) / 2^24 >= rate, in whole numbers. */
  uint32_t least = (uint32_t)ceil((double)rate * 16777216.0) << 8;
  tp__hlo_value kept = tp__hlo_compare(w, "GE", word, tp__hlo_constant_u32(w, &word.shape, least));
  if (n->attr.flag) {
    tp__shape row = tp__shape_make(1, &rows);
    kept = tp__hlo_per_row(w, tp__hlo_reshape(w, kept, &row), x);
  } else {
    kept = tp__hlo_reshape(w, kept, &x.shape);
  }
  w->zero = tp__hlo_zero_operand(w, n, 0);
  x = tp__hlo_times(w, x, 1 / (1 - (double)rate));
  return tp__hlo_select(w, kept, x, tp__hlo_like(w, x, 0));
}

tp__hlo_value tp__hlo_random_flip(tp__hlo *w, const tp__node *n)
{
  tp__hlo_value x = tp__hlo_operand(w, n, 0);
  tp__hlo_value word = tp__hlo_word(w, tp__hlo_operand(w, n, 1), TP__DRAW_FLIP);
  /* (word >> 8) / 2^24 < 1/2 */
  tp__hlo_value flip =
      tp__hlo_compare(w, "LT", word, tp__hlo_constant_u32(w, &word.shape, 1u << 31));
  tp__hlo_value mirrored = tp__hlo_emit(w, x, &x, "stablehlo.reverse $0, dims = [2] : @r");
  return tp__hlo_select(w, tp__hlo_per_row(w, flip, x), mirrored, x);
}
