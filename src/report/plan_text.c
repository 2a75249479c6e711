/* plan_text - a plan in words; see plan_report.h */
#include <string.h>

#include "plan_report.h"

/* ---- figures ---- */

/* "12,753" */
static const char *grouped(double number, char text[40])
{
  char digits[32];
  int n = snprintf(digits, sizeof digits, "%.0f", number), at = 0;
  for (int i = 0; i < n && at < 38; i++) {
    if (i > 0 && (n - i) % 3 == 0) text[at++] = ',';
    text[at++] = digits[i];
  }
  text[at] = '\0';
  return text;
}

/* "0.35 ms", "2.1 s" */
static const char *seconds_text(double seconds, char text[40])
{
  if (seconds < 0.9995)
    snprintf(text, 40, "%.3g ms", 1000 * seconds);
  else if (seconds < 90)
    snprintf(text, 40, "%.1f s", seconds);
  else if (seconds < 5400)
    snprintf(text, 40, "%.1f minutes", seconds / 60);
  else
    snprintf(text, 40, "%.1f hours", seconds / 3600);
  return text;
}

static const char *device_word(const tp__plan *plan)
{
  return plan->options->target.chip->devices > 1 ? "core" : "chip";
}

/* ---- one program ---- */

static tp_status add_memory(const tp__plan *plan, const char *label, const tp__planned *p,
                            tp__buffer *to, tp_error *err)
{
  const tp__verdict *v = &p->verdict;
  const tp__executable_info *i = &v->info;
  char need[32], there[32], kept[32], input[32], work[32], code[32];
  uint64_t arguments = i->argument_bytes > p->input_bytes ? i->argument_bytes - p->input_bytes : 0;
  tp__bytes_text(there, plan->options->target.chip->usable);
  if (!v->fits) return tp__buffer_printf(to, err, "  %-12sdoes not fit: %s\n", label, v->why);
  return tp__buffer_printf(
      to, err,
      "  %-12sfits: %s of %s on each %s (weights and moments %s, input %s, working memory %s, "
      "program %s); %s in %.1f s\n",
      label, tp__bytes_text(need, v->need), there, device_word(plan),
      tp__bytes_text(kept, arguments), tp__bytes_text(input, p->input_bytes),
      tp__bytes_text(work, i->temporary_bytes), tp__bytes_text(code, i->code_bytes),
      v->cached ? "compiled earlier" : "compiled", v->seconds);
}

static tp_status add_time(const tp__plan *plan, const tp__planned *p, const tp__bound *b,
                          tp__buffer *to, tp_error *err)
{
  const tp__executable_info *i = &p->verdict.info;
  char bytes[32], a[40], t[40], c[40], all[40];
  if (!p->verdict.fits) return TP_OK;
  if (b->seconds <= 0)
    return tp__buffer_printf(to, err, "  %-12sthe compiler does not tell FLOPs and bytes\n", "");
  TP__TRY(tp__buffer_printf(to, err, "  %-12s%.2f GFLOP and %s of memory traffic on each %s\n", "",
                            i->flops / 1e9, tp__bytes_text(bytes, (uint64_t)i->bytes_accessed),
                            device_word(plan)));
  TP__TRY(tp__buffer_printf(to, err, "  %-12sat best %s: bound by %s (arithmetic %s, memory %s", "",
                            seconds_text(b->seconds, all),
                            b->arithmetic > b->traffic ? "arithmetic" : "memory",
                            seconds_text(b->arithmetic, a), seconds_text(b->traffic, t)));
  if (b->compiler > 0)
    TP__TRY(tp__buffer_printf(to, err, "; the compiler expects %s", seconds_text(b->compiler, c)));
  return tp__buffer_printf(to, err, ")\n");
}

static tp_status add_program(const tp__plan *plan, const char *label, const tp__planned *p,
                             const tp__bound *b, tp__buffer *to, tp_error *err)
{
  if (p->rows == 0) return TP_OK;
  TP__TRY(add_memory(plan, label, p, to, err));
  return add_time(plan, p, b, to, err);
}

/* ---- a phase ---- */

static tp_status add_largest(const tp__plan *plan, const tp__phase_plan *p, tp__buffer *to,
                             tp_error *err)
{
  const tp__planned *s = &p->step;
  bool statistics = p->fine_tune && strcmp(plan->options->train->batch_norm, "batch") == 0;
  if (plan->options->largest && s->largest > 0)
    TP__TRY(tp__buffer_printf(to, err, "  %-12s%lld on each of %d fit", "largest",
                              (long long)s->largest, plan->replicas));
  else if (plan->options->largest)
    TP__TRY(tp__buffer_printf(to, err, "  %-12snone was found that fits", "largest"));
  if (plan->options->largest && s->too_many > 0)
    TP__TRY(tp__buffer_printf(to, err, ", %lld do not", (long long)s->too_many));
  if (plan->options->largest) TP__TRY(tp__buffer_printf(to, err, "\n"));
  if (!s->verdict.fits && !statistics && strcmp(plan->options->train->accumulate, "auto") == 0)
    return tp__buffer_printf(to, err,
                             "  %-12sa training would take the batch in parts (accumulate = auto); "
                             "--accumulate N plans it in N\n",
                             "");
  return TP_OK;
}

static tp_status add_run(const tp__plan *plan, const tp__phase_plan *p, tp__buffer *to,
                         tp_error *err)
{
  char a[40], b[40];
  if (p->needs > 0) {
    TP__TRY(tp__buffer_printf(to, err, "  %-12s%s pictures/s keep the %ss busy", "input",
                              grouped(p->needs, a), device_word(plan)));
    if (plan->measured)
      TP__TRY(tp__buffer_printf(
          to, err, "; this machine makes %s with %d thread%s: %s", grouped(plan->host, b),
          plan->threads, plan->threads == 1 ? "" : "s", p->host_limits ? "too few" : "enough"));
    if (p->host_limits)
      TP__TRY(tp__buffer_printf(to, err, ", they wait %.0f %% of the time",
                                100 * (1 - plan->host / p->needs)));
    if (p->host_limits && p->kept)
      TP__TRY(tp__buffer_printf(to, err, " of the first epoch; then features are kept"));
    TP__TRY(tp__buffer_printf(to, err, "\n"));
    if (p->host_limits && plan->movable)
      TP__TRY(tp__buffer_printf(to, err,
                                "  %-12sflips and turns can be done by the %ss: --augment-on "
                                "device\n",
                                "", device_word(plan)));
  }
  if (p->seconds <= 0) return TP_OK;
  return tp__buffer_printf(to, err, "  %-12s%s steps an epoch%s; %d epoch%s at best: %s%s\n", "run",
                           grouped((double)plan->steps, a),
                           plan->val_steps > 0 ? " and a validation" : "", p->epochs,
                           p->epochs == 1 ? "" : "s", seconds_text(p->seconds, b),
                           p->host_limits ? ", with pictures from this machine" : "");
}

static tp_status add_phase(const tp__plan *plan, const tp__phase_plan *p, tp__buffer *to,
                           tp_error *err)
{
  TP__TRY(tp__buffer_printf(to, err, "\n%s, %d epoch%s, %zu arrays train",
                            p->fine_tune ? "fine-tuning" : "head", p->epochs,
                            p->epochs == 1 ? "" : "s", p->trainable));
  if (p->kept) TP__TRY(tp__buffer_printf(to, err, "; features are computed once and kept"));
  if (p->step.parts > 1)
    TP__TRY(tp__buffer_printf(to, err, "; a step is taken in %d parts", p->step.parts));
  TP__TRY(tp__buffer_printf(to, err, "\n"));
  TP__TRY(add_program(plan, "features", &p->features, &p->features_bound, to, err));
  TP__TRY(add_program(plan, "step", &p->step, &p->step_bound, to, err));
  TP__TRY(add_largest(plan, p, to, err));
  TP__TRY(add_program(plan, "validation", &p->scores, &p->scores_bound, to, err));
  return add_run(plan, p, to, err);
}

/* ---- the plan ---- */

static tp_status add_data(const tp__plan *plan, tp__buffer *to, tp_error *err)
{
  char a[40], b[40];
  TP__TRY(tp__buffer_printf(to, err, "data        "));
  if (plan->examples > 0)
    TP__TRY(tp__buffer_printf(to, err, "%s examples, ", grouped((double)plan->examples, a)));
  else
    TP__TRY(
        tp__buffer_printf(to, err, "not given (--train, or --examples N, tell steps and time), "));
  if (plan->val_examples > 0)
    TP__TRY(
        tp__buffer_printf(to, err, "%s for validation, ", grouped((double)plan->val_examples, b)));
  return tp__buffer_printf(to, err, "pixels cross as %s%s\n", plan->bytes ? "uint8" : "float32",
                           plan->augments ? ", flips and turns on the device" : "");
}

tp_status tp__plan_text(const tp__plan *plan, tp__buffer *text, tp_error *err)
{
  const tp__target *t = &plan->options->target;
  char memory[32], usable[32];
  TP__TRY(tp__buffer_printf(text, err,
                            "network     %s, %dx%d, %d classes, %s; a batch of %d on each of %d "
                            "%ss is %d\n",
                            plan->model, plan->height, plan->width, plan->classes,
                            plan->options->train->precision, plan->batch, plan->replicas,
                            device_word(plan), plan->batch * plan->replicas));
  TP__TRY(tp__buffer_printf(text, err,
                            "machine     %s (%s): %d %ss, %d host%s; %s each, of which a program "
                            "may take %s\n",
                            t->chip->title, t->topology, plan->machine.devices, device_word(plan),
                            plan->machine.hosts, plan->machine.hosts == 1 ? "" : "s",
                            tp__bytes_text(memory, t->chip->memory),
                            tp__bytes_text(usable, t->chip->usable)));
  TP__TRY(tp__buffer_printf(text, err, "compiler    %s\n", plan->machine.version));
  TP__TRY(add_data(plan, text, err));
  for (size_t i = 0; i < plan->n_phases; i++) TP__TRY(add_phase(plan, &plan->phase[i], text, err));
  return tp__buffer_printf(text, err, "\n%s\n", plan->fits ? "it fits" : "it does not fit");
}
