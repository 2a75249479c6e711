/* planner_search - how many rows of a step fit; see planner_parts.h
 *
 * A compilation takes from seconds to minutes, so few are made. Memory grows almost straight with
 * the rows: a line through what is known says where it ends, and a little less is compiled. Rows
 * are looked for in steps of 8 (of each part), which is how devices lay them out.
 */
#include "planner_parts.h"

enum { ROWS_MOST = 65536 };

void tp__row_search_learn(tp__row_search *s, int64_t rows, bool fits, double need, double temporary)
{
  if (!fits) {
    if (s->high == 0 || rows < s->high) s->high = rows;
    return;
  }
  if (rows <= s->low) return;
  s->per_row =
      s->low > 0 ? (need - s->low_bytes) / (double)(rows - s->low) : temporary / (double)rows;
  s->low = rows;
  s->low_bytes = need;
}

/* Where the line says that memory ends, or half and twice of what is known. */
static double guess(const tp__row_search *s)
{
  if (s->low == 0) return (double)s->high / 2;
  if (s->per_row <= 0) return 2 * (double)s->low;
  return (double)s->low + 0.98 * (s->usable - s->low_bytes) / s->per_row;
}

int64_t tp__row_search_next(const tp__row_search *s)
{
  int64_t near = s->low / 16 > s->unit ? s->low / 16 : s->unit;
  if (s->high > 0 && s->high - s->low <= near) return 0;
  double at = guess(s);
  if (s->high > 0 && at >= (double)s->high) at = (double)(s->low + s->high) / 2;
  if (at > ROWS_MOST) at = ROWS_MOST;
  int64_t rows = (int64_t)at / s->unit * s->unit;
  return rows >= s->unit && rows - s->low >= near ? rows : 0;
}

static void learn(tp__row_search *s, const tp__planned *p)
{
  tp__row_search_learn(s, p->rows, p->verdict.fits, (double)p->verdict.need,
                       (double)p->verdict.info.temporary_bytes);
}

tp_status tp__planner_search(tp__planner *planner, const tp__graph *graph,
                             const tp__compile_options *options, tp__planned *planned,
                             tp_error *err)
{
  tp__row_search s = {.unit = planned->parts * (planned->rows / planned->parts >= 8 ? 8 : 1),
                      .usable = (double)tp__ahead_target(planner->options.ahead)->chip->usable};
  tp__planned probe = *planned;
  learn(&s, planned);
  for (int i = 0; i < TP__SEARCH_TRIES; i++) {
    int64_t rows = tp__row_search_next(&s);
    if (rows == 0) break;
    TP__TRY(tp__planner_compile(planner, graph, options, rows, &probe, err));
    learn(&s, &probe);
  }
  planned->largest = s.low;
  planned->too_many = s.high;
  return TP_OK;
}
