/* pickle_machine - what pickle.c (the stack machine) and pickle_call.c (globals, calls, storages)
 * share. */
#ifndef TP_PICKLE_MACHINE_H
#define TP_PICKLE_MACHINE_H

#include "pickle.h"

typedef struct machine {
  tp__pickle *p;
  const uint8_t *data;
  size_t size, next, at; /* at: the current opcode's byte */
  uint8_t opcode;
  tp__pickle_value **stack, **memo;
  size_t depth, stack_capacity, memo_size, memo_count;
  size_t marks[1000], n_marks;
} machine;

/* Both count against the memory limit; NULL with err set. */
void *tp__pickle_alloc(tp__pickle *p, size_t bytes, tp_error *err);
tp__pickle_value *tp__pickle_new(tp__pickle *p, tp__pickle_kind kind, tp_error *err);
bool tp__pickle_grow(tp__pickle *p, tp__pickle_value ***item, size_t count, size_t *capacity,
                     tp_error *err);

/* The number of an allowed global, -1 for all others. */
int tp__pickle_global(const char *module, size_t module_size, const char *name, size_t name_size);

/* Does an allowed call. */
tp_status tp__pickle_call(tp__pickle *p, int global, const tp__pickle_value *arguments,
                          tp__pickle_value **result, tp_error *err) TP_CHECKED;

/* The storage of a persistent id ("storage", type, key, place, elements[, view]). */
tp_status tp__pickle_storage(tp__pickle *p, const tp__pickle_value *id, tp__pickle_value **result,
                             tp_error *err) TP_CHECKED;

#endif
