/* planner_search - how many rows of a step fit; see planner_parts.h
 *
 * A compilation takes from seconds to minutes, so few are made. Memory grows almost straight with
 * the rows: a line through what is known says where the memory ends, and is compiled there. Rows
 * are looked for in steps of 8 (of each part), which is how devices lay them out.
 */
#include "planner_parts.h"

enum { MOST_TRIES = 5, ROWS_MOST = 65536 };

struct search {
  int64_t unit;
  int64_t low, high; /* fits; does not. 0: not known */
  double low_bytes;  /* at low */
  double per_row;    /* bytes; 0: not known */
  double usable;
};

static void learn(struct search *s, const tp__planned *p)
{
  if (!p->verdict.fits) {
    if (s->high == 0 || p->rows < s->high) s->high = p->rows;
    return;
  }
  double bytes = (double)p->verdict.need;
  s->per_row = s->low > 0 ? (bytes - s->low_bytes) / (double)(p->rows - s->low)
                          : (double)p->verdict.info.temporary_bytes / (double)p->rows;
  s->low = p->rows;
  s->low_bytes = bytes;
}

/* The next number to try; 0: there is no need to. */
static int64_t next_rows(const struct search *s)
{
  double guess = (double)s->high / 2;
  if (s->low > 0 && s->per_row > 0)
    guess = (double)s->low + 0.98 * (s->usable - s->low_bytes) / s->per_row;
  else if (s->low > 0)
    guess = 2 * (double)s->low;
  if (guess > ROWS_MOST) guess = ROWS_MOST;
  int64_t near = s->low / 16 > s->unit ? s->low / 16 : s->unit;
  if (s->high > 0 && s->high - s->low <= near) return 0;
  if (s->high > 0 && guess >= (double)s->high) guess = (double)(s->low + s->high) / 2;
  int64_t rows = (int64_t)guess / s->unit * s->unit;
  if (rows < s->unit) return 0;
  return rows - s->low >= near ? rows : 0;
}

static int64_t unit_of(const tp__planned *p)
{
  int64_t each = p->rows / p->parts;
  return p->parts * (each >= 8 ? 8 : 1);
}

tp_status tp__planner_search(tp__planner *planner, const tp__graph *graph,
                             const tp__compile_options *options, tp__planned *planned,
                             tp_error *err)
{
  struct search s = {.unit = unit_of(planned),
                     .usable = (double)tp__ahead_target(planner->options.ahead)->chip->usable};
  tp__planned probe = *planned;
  learn(&s, planned);
  for (int i = 0; i < MOST_TRIES; i++) {
    int64_t rows = next_rows(&s);
    if (rows == 0) break;
    TP__TRY(tp__planner_compile(planner, graph, options, rows, &probe, err));
    learn(&s, &probe);
  }
  planned->largest = s.low;
  planned->too_many = s.high;
  return TP_OK;
}
