/* plan_report - a plan as people and programs read it. */
#ifndef TP_PLAN_REPORT_H
#define TP_PLAN_REPORT_H

#include "train/planning.h"

/* Paragraphs: what is planned for what, each phase, whether it fits. Adds to text. */
tp_status tp__plan_text(const tp__plan *plan, tp__buffer *text, tp_error *err) TP_CHECKED;
/* One JSON object (plan_json.c says what is in it), with a line end. Adds to text. */
tp_status tp__plan_json(const tp__plan *plan, tp__buffer *text, tp_error *err) TP_CHECKED;

#endif
