/* weights_match - copies a file's tensors into a model's by name, all or nothing; see weights.h */
#include <math.h>
#include <string.h>

#include "weights.h"

/* ---- numbers of one type into another ---- */

static float from_half(uint16_t h)
{
  int exponent = h >> 10 & 31, fraction = h & 1023;
  float value = exponent == 0    ? ldexpf((float)fraction, -24)
                : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                 : ldexpf((float)(fraction + 1024), exponent - 25);
  return h & 0x8000 ? -value : value;
}

static uint16_t to_half(double v)
{
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  double a = fabs(v);
  if (a == 0) return sign;
  if (isnan(v)) return sign | 0x7e00;
  if (a >= 65520) return sign | 0x7c00; /* halfway to the next after 65504 */
  int e = 0;
  (void)frexp(a, &e);
  if (e < -13) e = -13;                       /* subnormal: units of 2^-24 */
  double units = nearbyint(ldexp(a, 11 - e)); /* ties to even */
  return (uint16_t)(sign + (uint16_t)((e + 13) * 1024) + (uint16_t)units);
}

static uint16_t to_bfloat(double v)
{
  float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if (isnan(f)) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double get(const tp__tensor *t, size_t i)
{
  switch (t->dtype) {
  case TP__F32:
    return (double)((const float *)t->data)[i];
  case TP__F64:
    return ((const double *)t->data)[i];
  case TP__I32:
    return (double)((const int32_t *)t->data)[i];
  case TP__U32:
    return (double)((const uint32_t *)t->data)[i];
  case TP__U8:
    return (double)((const uint8_t *)t->data)[i];
  case TP__I64:
    return (double)((const int64_t *)t->data)[i];
  case TP__F16:
    return (double)from_half(((const uint16_t *)t->data)[i]);
  case TP__BF16: {
    uint32_t bits = (uint32_t)((const uint16_t *)t->data)[i] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
  }
  }
  return 0;
}

static bool fits(tp__dtype dtype, double v)
{
  switch (dtype) {
  case TP__I32:
    return v >= -0x1p31 && v < 0x1p31;
  case TP__U32:
    return v >= 0 && v < 0x1p32;
  case TP__U8:
    return v >= 0 && v < 256;
  case TP__I64:
    return v >= -0x1p63 && v < 0x1p63;
  default:
    return true;
  }
}

static void set(tp__tensor *t, size_t i, double v)
{
  switch (t->dtype) {
  case TP__F32:
    ((float *)t->data)[i] = (float)v;
    break;
  case TP__F64:
    ((double *)t->data)[i] = v;
    break;
  case TP__I32:
    ((int32_t *)t->data)[i] = (int32_t)v;
    break;
  case TP__U32:
    ((uint32_t *)t->data)[i] = (uint32_t)v;
    break;
  case TP__U8:
    ((uint8_t *)t->data)[i] = (uint8_t)v;
    break;
  case TP__I64:
    ((int64_t *)t->data)[i] = (int64_t)v;
    break;
  case TP__F16:
    ((uint16_t *)t->data)[i] = to_half(v);
    break;
  case TP__BF16:
    ((uint16_t *)t->data)[i] = to_bfloat(v);
    break;
  }
}

static void convert(const tp__tensor *from, tp__tensor *to)
{
  size_t n = tp__shape_elements(&to->shape, 0);
  if (from->dtype == to->dtype)
    memcpy(to->data, from->data, tp__tensor_bytes(to));
  else
    for (size_t i = 0; i < n; i++) set(to, i, get(from, i));
}

static tp_status check_values(const tp__tensor *from, const tp__tensor *to, tp_error *err)
{
  size_t n = tp__shape_elements(&to->shape, 0);
  for (size_t i = 0; from->dtype != to->dtype && i < n; i++)
    if (!fits(to->dtype, get(from, i)))
      return tp__fail(err, TP_ERR_DATA, "array %s: value %g does not fit into %s", to->name,
                      get(from, i), tp__dtype_name(to->dtype));
  return TP_OK;
}

/* ---- matching ---- */

static bool in_layer(const char *name, const char *layer)
{
  size_t n = layer == NULL ? 0 : strlen(layer);
  return n > 0 && strncmp(name, layer, n) == 0 && name[n] == '/';
}

/* "layer block1a_bn: gamma" from "block1a_bn/gamma". */
static const char *place(char text[256], const char *name)
{
  const char *slash = strrchr(name, '/');
  if (slash == NULL)
    snprintf(text, 256, "array %s", name);
  else
    snprintf(text, 256, "layer %.*s: %s", (int)(slash - name), name, slash + 1);
  return text;
}

static tp_status does_not_fit(const tp__tensor *wanted, const tp__tensor *found, bool is_head,
                              tp_error *err)
{
  char where[256], a[96], b[96];
  return tp__fail(err, TP_ERR_DATA,
                  "%s is %s in the file and %s in the model; nothing was loaded%s",
                  place(where, wanted->name), tp__shape_text(&found->shape, a),
                  tp__shape_text(&wanted->shape, b),
                  is_head ? "; --skip-mismatch loads everything but this layer"
                          : "; is it a file of this model?");
}

/* Looks only: counts, and finds what is in the way. */
static tp_status survey(const tp__tensors *file, const tp__tensors *model, const char *head,
                        bool skip, tp__weights_report *r, tp_error *err)
{
  const tp__tensor *missing = NULL, *odd = NULL, *odd_found = NULL;
  size_t absent = 0, known = 0;
  for (size_t i = 0; i < model->count; i++) {
    const tp__tensor *wanted = &model->item[i];
    const tp__tensor *found = tp__tensors_find(file, wanted->name);
    bool same = found != NULL && tp__shape_equal(&found->shape, &wanted->shape);
    known += found != NULL;
    absent += found == NULL;
    if (same) {
      r->loaded++;
      TP__TRY(check_values(found, wanted, err));
    } else if (skip && in_layer(wanted->name, head)) {
      r->skipped++;
    } else if (found == NULL && missing == NULL) {
      missing = wanted;
    } else if (found != NULL && odd == NULL) {
      odd = wanted;
      odd_found = found;
    }
  }
  r->unused = file->count - known;
  if (r->loaded == 0 && odd == NULL)
    return tp__fail(
        err, TP_ERR_DATA,
        "0 of %zu arrays matched: the file's names are others (it has \"%s\", the model \"%s\")",
        model->count, file->count > 0 ? file->item[0].name : "",
        model->count > 0 ? model->item[0].name : "");
  if (odd != NULL) return does_not_fit(odd, odd_found, in_layer(odd->name, head), err);
  char where[256];
  if (missing != NULL)
    return tp__fail(
        err, TP_ERR_DATA,
        "%s is not in the file (%zu of %zu arrays are missing); nothing was loaded%s",
        place(where, missing->name), absent, model->count,
        in_layer(missing->name, head) ? "; --skip-mismatch loads everything but this layer" : "");
  return TP_OK;
}

/* What an optimizer keeps for an array carries its name behind others: "adam/m/predictions/bias".
 */
static bool belongs(const tp__tensors *model, const char *name)
{
  for (; name != NULL; name = strchr(name, '/')) {
    name += *name == '/';
    if (tp__tensors_find(model, name) != NULL) return true;
  }
  return false;
}

/* Two networks of one family can share all the names that the smaller one has. */
static void warn_of_others(const tp__tensors *file, const tp__tensors *model, const char *what,
                           const tp__log *log)
{
  char where[256];
  const char *first = NULL;
  size_t count = 0;
  for (size_t i = 0; i < file->count; i++) {
    if (belongs(model, file->item[i].name)) continue;
    if (first == NULL) first = file->item[i].name;
    count++;
  }
  if (count > 0)
    tp__warn(log, "%s: %zu arrays have no place in the network, as %s: is it another network's?",
             what, count, place(where, first));
}

tp_status tp__weights_match(const tp__tensors *file, tp__tensors *model, const char *head,
                            bool skip_mismatch, const char *what, const tp__log *log,
                            tp__weights_report *report, tp_error *err)
{
  tp__weights_report r = {.wanted = model->count};
  tp_status status = survey(file, model, head, skip_mismatch, &r, err);
  if (status != TP_OK) return tp__at(err, status, "%s", what);
  for (size_t i = 0; i < model->count; i++) {
    tp__tensor *wanted = &model->item[i];
    const tp__tensor *found = tp__tensors_find(file, wanted->name);
    if (found != NULL && tp__shape_equal(&found->shape, &wanted->shape)) convert(found, wanted);
  }
  if (r.unused > 0) warn_of_others(file, model, what, log);
  tp__say(log, "%s: loaded %zu of %zu arrays, skipped %zu arrays%s%s, %zu unused", what, r.loaded,
          r.wanted, r.skipped, r.skipped > 0 ? " of layer " : "", r.skipped > 0 ? head : "",
          r.unused);
  if (report != NULL) *report = r;
  return TP_OK;
}
