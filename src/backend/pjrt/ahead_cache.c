/* ahead_cache - see ahead_cache.h */
#include "ahead_cache.h"

#include <inttypes.h>
#include <stdio.h>

/* Changes when what is kept, or how it is judged, does. */
static const char form[] = "answer 1";

tp_status tp__ahead_key(const tp__ahead *a, const char *text, size_t length, int replicas,
                        char key[TP__KEY], tp_error *err)
{
  const tp__target *t = tp__ahead_target(a);
  const int64_t number[] = {replicas, (int64_t)t->chip->usable};
  tp__keying *k = tp__key_begin();
  tp__key_add_text(k, form);
  tp__key_add_text(k, t->chip->name);
  tp__key_add_text(k, t->topology);
  tp__key_add_text(k, tp__ahead_machine(a)->version);
  tp__key_add(k, number, sizeof number);
  tp__key_add_file(k, tp__ahead_plugin(a));
  tp__key_add_flags(k);
  tp__key_add(k, text, length);
  return tp__key_end(k, key, err);
}

/* One line of numbers, then why it does not fit. */
bool tp__ahead_recall(const char *folder, const char *key, tp__verdict *v)
{
  tp__buffer file = {0};
  tp__verdict got = {.cached = true};
  tp__executable_info *i = &got.info;
  int fits = 0, end = 0;
  if (!tp__program_read(folder, key, &file)) return false;
  bool whole = tp__buffer_add(&file, "", 1, NULL) == TP_OK;
  const char *text = (const char *)file.data;
  whole = whole &&
          sscanf(text,
                 "%d %lf %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                 " %lf %lf %lf\n%n",
                 &fits, &got.seconds, &got.need, &i->argument_bytes, &i->output_bytes,
                 &i->alias_bytes, &i->temporary_bytes, &i->code_bytes, &i->flops,
                 &i->bytes_accessed, &i->optimal_seconds, &end) == 11 &&
          end > 0;
  if (whole) snprintf(got.why, sizeof got.why, "%s", text + end);
  got.fits = fits == 1;
  tp__buffer_free(&file);
  if (whole) *v = got;
  return whole;
}

void tp__ahead_remember(const char *folder, const char *key, const tp__verdict *v)
{
  const tp__executable_info *i = &v->info;
  char text[1024];
  int n = snprintf(text, sizeof text,
                   "%d %.17g %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
                   " %.17g %.17g %.17g\n%s",
                   v->fits, v->seconds, v->need, i->argument_bytes, i->output_bytes, i->alias_bytes,
                   i->temporary_bytes, i->code_bytes, i->flops, i->bytes_accessed,
                   i->optimal_seconds, v->why);
  if (n > 0 && (size_t)n < sizeof text)
    tp__program_write(folder, key, text, (size_t)n, TP__PROGRAMS_MAX);
}
