/* Element by element: activations and their gradients, sums of tensors and the Adam update, over
 * any number of floats. The last floats that fill no vector go through the same instructions, so
 * that an element's place changes no bit.
 */
#include "backend/cpu/family.h"

#include "backend/cpu/vec.h"

void TP__FN(act)(tp__act act, long count, const float *x, float *y)
{
  long i = 0;
#define LOOP(f)                                                                                    \
  for (; i + TP__V <= count; i += TP__V) tp__store(y + i, f(tp__load(x + i)));                     \
  if (i < count) tp__store_part(y + i, f(tp__load_part(x + i, count - i)), count - i)
  TP__FOR_ACT(act, LOOP)
#undef LOOP
}

void TP__FN(act_grad)(tp__act act, long count, const float *dy, const float *x, float *dx)
{
  long i = 0;
#define LOOP(f)                                                                                    \
  for (; i + TP__V <= count; i += TP__V) tp__store(dx + i, f(tp__load(dy + i), tp__load(x + i)));  \
  if (i < count)                                                                                   \
  tp__store_part(dx + i, f(tp__load_part(dy + i, count - i), tp__load_part(x + i, count - i)),     \
                 count - i)
  TP__FOR_ACT_GRAD(act, LOOP)
#undef LOOP
}

void TP__FN(add)(long count, const float *a, const float *b, float *y)
{
  long i = 0;
  for (; i + TP__V <= count; i += TP__V) tp__store(y + i, tp__load(a + i) + tp__load(b + i));
  for (; i < count; i++) y[i] = a[i] + b[i];
}

/* Keras 3: the moments move towards g and g g; epsilon stands outside the bias correction, which
 * rate_corrected holds. Every operation rounds by itself, so that all instruction sets give the
 * same bits. */
typedef struct adam_rates {
  tp__vec rate, to_g, to_square, epsilon, decay;
} adam_rates;

TP__INLINE void adam_step(const adam_rates *r, tp__vec *p, tp__vec *m, tp__vec *v, tp__vec g)
{
  *m = *m + (g - *m) * r->to_g;
  *v = *v + (g * g - *v) * r->to_square;
  *p = *p - *p * r->decay - *m * r->rate / (tp__sqrt(*v) + r->epsilon);
}

void TP__FN(adam)(long count, float *p, float *m, float *v, const float *g, float rate_corrected,
                  float beta1, float beta2, float epsilon, float decay)
{
  const adam_rates rates = {tp__all(rate_corrected), tp__all(1.0f - beta1), tp__all(1.0f - beta2),
                            tp__all(epsilon), tp__all(decay)};
  for (long i = 0; i < count; i += TP__V) {
    const long left = count - i;
    tp__vec p_i = tp__load_upto(p + i, left), m_i = tp__load_upto(m + i, left),
            v_i = tp__load_upto(v + i, left);
    adam_step(&rates, &p_i, &m_i, &v_i, tp__load_upto(g + i, left));
    tp__store_upto(p + i, p_i, left);
    tp__store_upto(m + i, m_i, left);
    tp__store_upto(v + i, v_i, left);
  }
}
