/* hlo_text - values, types and plain operations as text; see hlo.h */
#include "hlo.h"

#include <math.h>
#include <string.h>

static const char *const type_name[] = {"f32", "bf16", "i1", "ui8", "i32", "ui32", "ui64"};

/* ---- text ---- */

void tp__hlo_put(tp__hlo *w, const char *format, ...)
{
  char text[512];
  va_list args;
  if (w->status != TP_OK) return;
  va_start(args, format);
  int size = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (size < 0 || size >= (int)sizeof text) {
    tp__hlo_fail(w, "an operation of %d characters is too long", size);
    return;
  }
  w->status = tp__buffer_add(w->text, text, (size_t)size, w->err);
}

void tp__hlo_put_value(tp__hlo *w, tp__hlo_value v)
{
  if (v.part >= 0)
    tp__hlo_put(w, "%%%d#%d", (int)v.id, (int)v.part);
  else
    tp__hlo_put(w, "%%%d", (int)v.id);
}

void tp__hlo_put_type(tp__hlo *w, tp__hlo_value v)
{
  tp__hlo_put(w, "tensor<");
  for (int i = 0; i < v.shape.rank; i++) tp__hlo_put(w, "%lldx", (long long)v.shape.dim[i]);
  tp__hlo_put(w, "%s>", type_name[v.type]);
}

/* Names of layers come from model files: only what is harmless in a string is kept. */
void tp__hlo_put_location(tp__hlo *w)
{
  char name[128];
  size_t n = 0;
  for (const char *c = w->where; c != NULL && *c != '\0' && n + 1 < sizeof name; c++)
    name[n++] = *c >= ' ' && *c <= '~' && *c != '"' && *c != '\\' ? *c : '_';
  name[n] = '\0';
  if (n > 0)
    tp__hlo_put(w, " loc(\"%s\")\n", name);
  else
    tp__hlo_put(w, "\n");
}

tp__hlo_value tp__hlo_absent(void)
{
  return (tp__hlo_value){.id = TP__HLO_ABSENT, .part = -1};
}

tp__hlo_value tp__hlo_typed(tp__hlo_type type, const tp__shape *shape)
{
  tp__hlo_value v = {.id = TP__HLO_ABSENT, .part = -1, .type = type};
  if (shape != NULL) v.shape = *shape;
  return v;
}

tp__hlo_type tp__hlo_type_of(tp__dtype dtype)
{
  switch (dtype) {
  case TP__I32:
    return TP__HLO_I32;
  case TP__U32:
    return TP__HLO_U32;
  case TP__U8:
    return TP__HLO_U8;
  default:
    return TP__HLO_F32;
  }
}

static void put_at(tp__hlo *w, char what, tp__hlo_value result, const tp__hlo_value *in)
{
  if (what == 'r')
    tp__hlo_put_type(w, result);
  else if (what == 'e')
    tp__hlo_put_type(w, tp__hlo_typed(result.type, NULL));
  else
    tp__hlo_put_type(w, in[what - '0']);
}

tp__hlo_value tp__hlo_emit(tp__hlo *w, tp__hlo_value result, const tp__hlo_value *in,
                           const char *pattern)
{
  const int32_t fresh = w->next + 1;
  result.id = w->next++;
  result.part = -1;
  tp__hlo_put(w, "    %%%d = ", (int)result.id);
  for (const char *c = pattern; *c != '\0'; c++) {
    size_t plain = strcspn(c, "$@");
    if (plain > 0) {
      tp__hlo_put(w, "%.*s", (int)plain, c);
      c += plain - 1;
    } else if (*c == '@') {
      put_at(w, *++c, result, in);
    } else if (*++c >= 'a') {
      int32_t id = fresh + *c - 'a';
      if (id >= w->next) w->next = id + 1;
      tp__hlo_put(w, "%%%d", (int)id);
    } else {
      tp__hlo_put_value(w, in[*c - '0']);
    }
  }
  tp__hlo_put_location(w);
  return result;
}

char *tp__hlo_list(char text[128], const int64_t *number, int count)
{
  size_t n = 0;
  text[0] = '\0';
  for (int i = 0; i < count && n < 100; i++)
    n += (size_t)snprintf(text + n, 128 - n, i > 0 ? ", %lld" : "%lld", (long long)number[i]);
  return text;
}

/* ---- constants ---- */

static tp__hlo_value constant(tp__hlo *w, tp__hlo_type type, const tp__shape *shape,
                              const char *number)
{
  char pattern[96];
  snprintf(pattern, sizeof pattern, "stablehlo.constant dense<%s> : @r", number);
  return tp__hlo_emit(w, tp__hlo_typed(type, shape), NULL, pattern);
}

tp__hlo_value tp__hlo_constant(tp__hlo *w, tp__hlo_type type, const tp__shape *shape, double value)
{
  char number[48];
  bool real = type == TP__HLO_F32 || type == TP__HLO_BF16;
  if (real && isinf(value))
    snprintf(number, sizeof number, "0x%s%s", value > 0 ? "7F80" : "FF80",
             type == TP__HLO_F32 ? "0000" : "");
  else if (real && isnan(value))
    snprintf(number, sizeof number, "0x7FC0%s", type == TP__HLO_F32 ? "0000" : "");
  else if (real)
    snprintf(number, sizeof number, "%.9e", value);
  else if (type == TP__HLO_I1)
    snprintf(number, sizeof number, "%s", value != 0 ? "true" : "false");
  else
    snprintf(number, sizeof number, "%lld", (long long)value);
  return constant(w, type, shape, number);
}

tp__hlo_value tp__hlo_constant_u32(tp__hlo *w, const tp__shape *shape, uint32_t value)
{
  char number[16];
  snprintf(number, sizeof number, "%u", (unsigned)value);
  return constant(w, TP__HLO_U32, shape, number);
}

tp__hlo_value tp__hlo_like(tp__hlo *w, tp__hlo_value x, double value)
{
  return tp__hlo_constant(w, x.type, &x.shape, value);
}

/* ---- element by element ---- */

tp__hlo_value tp__hlo_unary(tp__hlo *w, const char *op, tp__hlo_value x)
{
  char pattern[96];
  snprintf(pattern, sizeof pattern, "stablehlo.%s $0 : @r", op);
  return tp__hlo_emit(w, x, &x, pattern);
}

/* Also without a common type a module must not be half right: the compiler would say so, but not
 * where. */
static void want_same(tp__hlo *w, const char *op, tp__hlo_value a, tp__hlo_value b)
{
  char x[96], y[96];
  if (a.type == b.type && tp__shape_equal(&a.shape, &b.shape)) return;
  tp__hlo_fail(w, "%s of %s %s and %s %s", op, type_name[a.type], tp__shape_text(&a.shape, x),
               type_name[b.type], tp__shape_text(&b.shape, y));
}

tp__hlo_value tp__hlo_binary(tp__hlo *w, const char *op, tp__hlo_value a, tp__hlo_value b)
{
  char pattern[96];
  want_same(w, op, a, b);
  snprintf(pattern, sizeof pattern, "stablehlo.%s $0, $1 : @r", op);
  return tp__hlo_emit(w, a, (tp__hlo_value[]){a, b}, pattern);
}

tp__hlo_value tp__hlo_add(tp__hlo *w, tp__hlo_value a, tp__hlo_value b)
{
  return tp__hlo_binary(w, "add", a, b);
}

tp__hlo_value tp__hlo_sub(tp__hlo *w, tp__hlo_value a, tp__hlo_value b)
{
  return tp__hlo_binary(w, "subtract", a, b);
}

tp__hlo_value tp__hlo_mul(tp__hlo *w, tp__hlo_value a, tp__hlo_value b)
{
  return tp__hlo_binary(w, "multiply", a, b);
}

tp__hlo_value tp__hlo_div(tp__hlo *w, tp__hlo_value a, tp__hlo_value b)
{
  return tp__hlo_binary(w, "divide", a, b);
}

tp__hlo_value tp__hlo_times(tp__hlo *w, tp__hlo_value a, double factor)
{
  return factor == 1 ? a : tp__hlo_mul(w, a, tp__hlo_like(w, a, factor));
}

tp__hlo_value tp__hlo_compare(tp__hlo *w, const char *how, tp__hlo_value a, tp__hlo_value b)
{
  char pattern[96];
  want_same(w, "compare", a, b);
  snprintf(pattern, sizeof pattern, "stablehlo.compare %s, $0, $1 : (@0, @1) -> @r", how);
  return tp__hlo_emit(w, tp__hlo_typed(TP__HLO_I1, &a.shape), (tp__hlo_value[]){a, b}, pattern);
}

tp__hlo_value tp__hlo_select(tp__hlo *w, tp__hlo_value p, tp__hlo_value a, tp__hlo_value b)
{
  want_same(w, "select", a, b);
  return tp__hlo_emit(w, a, (tp__hlo_value[]){p, a, b}, "stablehlo.select $0, $1, $2 : @0, @r");
}

tp__hlo_value tp__hlo_convert(tp__hlo *w, tp__hlo_value x, tp__hlo_type type)
{
  if (x.type == type) return x;
  return tp__hlo_emit(w, tp__hlo_typed(type, &x.shape), &x, "stablehlo.convert $0 : (@0) -> @r");
}

/* ---- form ---- */

tp__hlo_value tp__hlo_reshape(tp__hlo *w, tp__hlo_value x, const tp__shape *shape)
{
  if (tp__shape_equal(&x.shape, shape)) return x;
  return tp__hlo_emit(w, tp__hlo_typed(x.type, shape), &x, "stablehlo.reshape $0 : (@0) -> @r");
}

tp__hlo_value tp__hlo_broadcast(tp__hlo *w, tp__hlo_value x, const tp__shape *to,
                                const int64_t *dim)
{
  char list[128], pattern[192];
  if (tp__shape_equal(&x.shape, to)) return x;
  snprintf(pattern, sizeof pattern, "stablehlo.broadcast_in_dim $0, dims = [%s] : (@0) -> @r",
           tp__hlo_list(list, dim, x.shape.rank));
  return tp__hlo_emit(w, tp__hlo_typed(x.type, to), &x, pattern);
}

tp__hlo_value tp__hlo_channels(tp__hlo *w, tp__hlo_value c, tp__hlo_value x)
{
  return tp__hlo_broadcast(w, c, &x.shape, (int64_t[]){x.shape.rank - 1});
}

tp__hlo_value tp__hlo_per_row(tp__hlo *w, tp__hlo_value n, tp__hlo_value x)
{
  return tp__hlo_broadcast(w, n, &x.shape, (int64_t[]){0});
}

tp__hlo_value tp__hlo_spread(tp__hlo *w, tp__hlo_value s, tp__hlo_value x)
{
  return tp__hlo_broadcast(w, s, &x.shape, NULL);
}

tp__hlo_value tp__hlo_reduce(tp__hlo *w, const char *op, tp__hlo_value x, int first, int last)
{
  char list[128], pattern[256];
  int64_t dim[TP__RANK_MAX];
  tp__shape left = {0};
  int n = 0;
  for (int i = 0; i < x.shape.rank; i++) {
    if (i >= first && i <= last)
      dim[n++] = i;
    else
      left.dim[left.rank++] = x.shape.dim[i];
  }
  if (n == 0) return x;
  tp__hlo_value start =
      tp__hlo_constant(w, x.type, NULL, strcmp(op, "add") == 0 ? 0 : -(double)INFINITY);
  snprintf(pattern, sizeof pattern,
           "stablehlo.reduce($0 init: $1) applies stablehlo.%s across dimensions = [%s] : "
           "(@0, @1) -> @r",
           op, tp__hlo_list(list, dim, n));
  return tp__hlo_emit(w, tp__hlo_typed(x.type, &left), (tp__hlo_value[]){x, start}, pattern);
}

tp__hlo_value tp__hlo_sum_to_last(tp__hlo *w, tp__hlo_value x)
{
  return tp__hlo_reduce(w, "add", x, 0, x.shape.rank - 2);
}

tp__hlo_value tp__hlo_sum_all(tp__hlo *w, tp__hlo_value x)
{
  return tp__hlo_reduce(w, "add", x, 0, x.shape.rank - 1);
}

tp__hlo_value tp__hlo_iota(tp__hlo *w, tp__hlo_type type, const tp__shape *shape, int dim)
{
  char pattern[64];
  snprintf(pattern, sizeof pattern, "stablehlo.iota dim = %d : @r", dim);
  return tp__hlo_emit(w, tp__hlo_typed(type, shape), NULL, pattern);
}

tp__hlo_value tp__hlo_slice(tp__hlo *w, tp__hlo_value x, const int64_t *from, const int64_t *to,
                            const int64_t *step)
{
  char pattern[256];
  tp__hlo_value y = x;
  size_t n = (size_t)snprintf(pattern, sizeof pattern, "stablehlo.slice $0 [");
  for (int i = 0; i < x.shape.rank; i++) {
    int64_t by = step != NULL ? step[i] : 1;
    y.shape.dim[i] = (to[i] - from[i] + by - 1) / by;
    n += (size_t)snprintf(pattern + n, sizeof pattern - n,
                          by == 1 ? "%s%lld:%lld" : "%s%lld:%lld:%lld", i > 0 ? ", " : "",
                          (long long)from[i], (long long)to[i], (long long)by);
  }
  if (tp__shape_equal(&x.shape, &y.shape)) return x;
  snprintf(pattern + n, sizeof pattern - n, "] : (@0) -> @r");
  return tp__hlo_emit(w, y, &x, pattern);
}

/* More than TP__HLO_OPERANDS are put together by groups. */
tp__hlo_value tp__hlo_concat(tp__hlo *w, const tp__hlo_value *x, int count, int dim)
{
  static const char *const name[] = {"$0", ", $1", ", $2", ", $3", ", $4", ", $5", ", $6", ", $7"};
  static const char *const type[] = {"@0", ", @1", ", @2", ", @3", ", @4", ", @5", ", @6", ", @7"};
  tp__hlo_value group[TP__HLO_OPERANDS], y = x[0];
  char pattern[256] = "stablehlo.concatenate ", end[16];
  if (count == 1) return x[0];
  int groups = 0, each = (count + TP__HLO_OPERANDS - 1) / TP__HLO_OPERANDS;
  for (int i = 0; i < count; i += each) {
    int left = count - i;
    group[groups++] = tp__hlo_concat(w, x + i, left < each ? left : each, dim);
  }
  y.shape.dim[dim] = 0;
  for (int i = 0; i < groups; i++) {
    strncat(pattern, name[i], sizeof pattern - strlen(pattern) - 1);
    y.shape.dim[dim] += group[i].shape.dim[dim];
  }
  snprintf(end, sizeof end, ", dim = %d : (", dim);
  strncat(pattern, end, sizeof pattern - strlen(pattern) - 1);
  for (int i = 0; i < groups; i++) strncat(pattern, type[i], sizeof pattern - strlen(pattern) - 1);
  strncat(pattern, ") -> @r", sizeof pattern - strlen(pattern) - 1);
  return tp__hlo_emit(w, y, group, pattern);
}

tp__hlo_value tp__hlo_pad(tp__hlo *w, tp__hlo_value x, const int64_t *low, const int64_t *high,
                          const int64_t *between)
{
  char a[128], b[128], c[128], pattern[512];
  tp__hlo_value y = x;
  bool same = true;
  for (int i = 0; i < x.shape.rank; i++) {
    if (low[i] != 0 || high[i] != 0 || between[i] != 0) same = false;
    y.shape.dim[i] += low[i] + high[i] + (x.shape.dim[i] - 1) * between[i];
  }
  if (same) return x;
  tp__hlo_value zero = tp__hlo_constant(w, x.type, NULL, 0);
  int rank = x.shape.rank;
  snprintf(pattern, sizeof pattern,
           "stablehlo.pad $0, $1, low = [%s], high = [%s], interior = [%s] : (@0, @1) -> @r",
           tp__hlo_list(a, low, rank), tp__hlo_list(b, high, rank), tp__hlo_list(c, between, rank));
  return tp__hlo_emit(w, y, (tp__hlo_value[]){x, zero}, pattern);
}

tp__hlo_value tp__hlo_dot(tp__hlo *w, tp__hlo_value a, int a_dim, tp__hlo_value b, int b_dim)
{
  char pattern[128];
  tp__shape shape = tp__shape_make(2, (int64_t[]){a.shape.dim[1 - a_dim], b.shape.dim[1 - b_dim]});
  snprintf(pattern, sizeof pattern,
           "stablehlo.dot_general $0, $1, contracting_dims = [%d] x [%d] : (@0, @1) -> @r", a_dim,
           b_dim);
  return tp__hlo_emit(w, tp__hlo_typed(TP__HLO_F32, &shape), (tp__hlo_value[]){a, b}, pattern);
}
