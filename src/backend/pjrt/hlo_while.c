/* hlo_while - loops, and the parts of arrays that their turns read and write; see hlo.h */
#include "hlo.h"

static void put_values(tp__hlo *w, const tp__hlo_value *value, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    if (i > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_value(w, value[i]);
  }
}

/* " : tensor<i32>, tensor<f32>" */
static void put_types(tp__hlo *w, const tp__hlo_value *value, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    tp__hlo_put(w, i > 0 ? ", " : " : ");
    tp__hlo_put_type(w, value[i]);
  }
}

void tp__hlo_several(tp__hlo *w, tp__hlo_value *value, size_t count)
{
  int32_t id = w->next++;
  for (size_t i = 0; i < count; i++) {
    value[i].id = id;
    value[i].part = count > 1 ? (int32_t)i : -1;
  }
  tp__hlo_put(w, count > 1 ? "    %%%d:%zu = " : "    %%%d = ", (int)id, count);
}

void tp__hlo_return(tp__hlo *w, const char *op, const tp__hlo_value *value, size_t count)
{
  tp__hlo_put(w, "    %s ", op);
  put_values(w, value, count);
  put_types(w, value, count);
  tp__hlo_put(w, "\n");
}

void tp__hlo_while(tp__hlo *w, const tp__hlo_value *start, size_t count, tp__hlo_value *now,
                   tp__hlo_value *after)
{
  for (size_t i = 0; i < count; i++) now[i] = after[i] = start[i];
  tp__hlo_several(w, after, count);
  tp__hlo_put(w, "stablehlo.while(");
  for (size_t i = 0; i < count; i++) {
    now[i].id = w->next++;
    now[i].part = -1;
    if (i > 0) tp__hlo_put(w, ", ");
    tp__hlo_put_value(w, now[i]);
    tp__hlo_put(w, " = ");
    tp__hlo_put_value(w, start[i]);
  }
  tp__hlo_put(w, ")");
  put_types(w, start, count);
  tp__hlo_put(w, "\n    cond {\n");
}

void tp__hlo_while_do(tp__hlo *w, tp__hlo_value more)
{
  tp__hlo_return(w, "stablehlo.return", &more, 1);
  tp__hlo_put(w, "    } do {\n");
}

void tp__hlo_while_end(tp__hlo *w, const tp__hlo_value *next, size_t count)
{
  tp__hlo_return(w, "stablehlo.return", next, count);
  tp__hlo_put(w, "    }\n");
}

/* ---- parts of arrays: from (first, 0, 0...) on ---- */

static void put_start(tp__hlo *w, tp__hlo_value first, tp__hlo_value zero, int rank)
{
  for (int i = 0; i < rank; i++) {
    tp__hlo_put(w, ", ");
    tp__hlo_put_value(w, i == 0 ? first : zero);
  }
}

static void put_end(tp__hlo *w, int rank, tp__hlo_value result)
{
  for (int i = 0; i < rank; i++) tp__hlo_put(w, ", tensor<i32>");
  tp__hlo_put(w, ") -> ");
  tp__hlo_put_type(w, result);
  tp__hlo_put_location(w);
}

tp__hlo_value tp__hlo_part_of(tp__hlo *w, tp__hlo_value x, tp__hlo_value first, tp__hlo_value zero,
                              int64_t count)
{
  char list[128];
  tp__hlo_value y = x;
  y.shape.dim[0] = count;
  tp__hlo_several(w, &y, 1);
  tp__hlo_put(w, "stablehlo.dynamic_slice ");
  tp__hlo_put_value(w, x);
  put_start(w, first, zero, x.shape.rank);
  tp__hlo_put(w, ", sizes = [%s] : (", tp__hlo_list(list, y.shape.dim, y.shape.rank));
  tp__hlo_put_type(w, x);
  put_end(w, x.shape.rank, y);
  return y;
}

tp__hlo_value tp__hlo_with_part(tp__hlo *w, tp__hlo_value x, tp__hlo_value part,
                                tp__hlo_value first, tp__hlo_value zero)
{
  tp__hlo_value y = x;
  tp__hlo_several(w, &y, 1);
  tp__hlo_put(w, "stablehlo.dynamic_update_slice ");
  tp__hlo_put_value(w, x);
  tp__hlo_put(w, ", ");
  tp__hlo_put_value(w, part);
  put_start(w, first, zero, x.shape.rank);
  tp__hlo_put(w, " : (");
  tp__hlo_put_type(w, x);
  tp__hlo_put(w, ", ");
  tp__hlo_put_type(w, part);
  put_end(w, x.shape.rank, y);
  return y;
}
