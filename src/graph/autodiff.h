/* autodiff - what the driver (autodiff.c) and the rules of the operators (autodiff_rules.c) share.
 *
 * A rule gets a node v and dy = d loss / d v, and gives each operand that needs one its gradient.
 * The driver checks that none was forgotten: an operator without a rule, or an operand that a rule
 * leaves out, is an error, never a zero.
 */
#ifndef TP_AUTODIFF_H
#define TP_AUTODIFF_H

#include "graph.h"

typedef struct tp__gradient {
  tp__graph *g;
  const bool *needs; /* [values up to the loss]: the value depends on a wanted one */
  tp__value *d;      /* [values up to the loss]: d loss / d value so far, TP__NONE: 0 */
  tp__node node;     /* a copy of the node at hand, since adding nodes moves them */
  unsigned given;    /* bit i: operand i of the node at hand has got its gradient */
  tp_error *err;
} tp__gradient;

typedef tp_status (*tp__gradient_fn)(tp__gradient *c, tp__value dy);

/* NULL where there is none. */
tp__gradient_fn tp__gradient_rule(tp__op op);

static inline bool tp__gradient_wanted(const tp__gradient *c, int i)
{
  return i < c->node.n_in && c->node.in[i] != TP__NONE && c->needs[c->node.in[i]];
}

/* Adds value to operand i's gradient (does nothing when it is not wanted). */
tp_status tp__gradient_give(tp__gradient *c, int i, tp__value value) TP_CHECKED;
/* The same with a new node for the value, made only when it is wanted. */
tp_status tp__gradient_emit(tp__gradient *c, int i, tp__op op, const tp__value *in, int n_in,
                            const tp__attr *attr) TP_CHECKED;
/* A node that belongs to the layer at hand. */
tp_status tp__gradient_node(tp__gradient *c, tp__op op, const tp__value *in, int n_in,
                            const tp__attr *attr, tp__value *value) TP_CHECKED;

#endif
