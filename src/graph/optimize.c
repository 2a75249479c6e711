/* optimize - the passes in their order; see graph.h, rewrite.h
 *
 * The order matters: a bias must be in the convolution before the batch norm is folded into it, and
 * both before the activation, which ends the part that is linear; what is added after the
 * activation comes last, but for an activation of that sum.
 */
#include "rewrite.h"

static const struct {
  const char *name;
  tp__visit_fn visit;
} pass[] = {
    {"simplify", tp__pass_simplify},
    {"merge padding", tp__pass_pad},
    {"fuse bias", tp__pass_bias},
    {"fold batch norm", tp__pass_batch_norm},
    {"fuse activation", tp__pass_activation},
    {"fuse residual", tp__pass_residual},
    {"fuse last activation", tp__pass_last_activation},
    {"fuse scale", tp__pass_scale},
    {"drop dead nodes", NULL},
};

tp_status tp__graph_optimize(const tp__graph *g, tp__graph **optimized, tp_error *err)
{
  tp__graph *now = NULL;
  for (size_t i = 0; i < sizeof pass / sizeof pass[0]; i++) {
    tp__graph *next = NULL;
    tp_status status = tp__rewrite_run(now != NULL ? now : g, pass[i].visit, &next, err);
    tp__graph_free(now);
    if (status != TP_OK) return tp__at(err, status, "optimize: %s", pass[i].name);
    now = next;
  }
  *optimized = now;
  return TP_OK;
}
