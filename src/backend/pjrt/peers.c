/* peers - how several processes that share one program find each other: a plugin asks for values by
 * name, and the key-value store of base/kv_store.h answers; see client.h
 *
 * The plugin calls from threads of its own, several at once.
 */
#include <stdlib.h>
#include <string.h>

#include "base/kv_store.h"
#include "pjrt_parts.h"

enum { look_ms = 1000 };

static tp__pjrt_error *refuse(tp__pjrt_callback_error *make, tp__pjrt_code code, const char *text)
{
  return (*make)(code, text, strlen(text));
}

static void free_value(char *value)
{
  free(value);
}

/* What a plugin understands of an answer without a value. */
static tp__pjrt_error *explain(tp__kv_answer answer, tp__pjrt_callback_error *make,
                               tp__pjrt_code absent, const tp_error *err)
{
  switch (answer) {
  case TP__KV_OK:
    return NULL;
  case TP__KV_NOT_FOUND:
    return refuse(make, absent,
                  absent == TP__PJRT_NOT_FOUND ? "there is no such key"
                                               : "no process has given this value in time");
  case TP__KV_EXISTS:
    return refuse(make, TP__PJRT_ALREADY_EXISTS, "the key is there already");
  case TP__KV_FAILED:
    break;
  }
  return refuse(make, TP__PJRT_UNAVAILABLE, err->text);
}

/* Waits as long as it is told, unless the process that should give the value is lost. */
static tp__pjrt_error *get(tp__pjrt_kv_get *args)
{
  tp_error err = {0};
  const tp__peers *peers = args->user;
  tp__kv_answer answer = TP__KV_NOT_FOUND;
  for (int left = args->timeout_ms, now; answer == TP__KV_NOT_FOUND && left >= 0; left -= now) {
    now = left > look_ms ? look_ms : left > 0 ? left : 1;
    answer = tp__kv_get(peers->kv, args->key, args->key_size, now, &args->value, &args->value_size,
                        &err);
    if (answer == TP__KV_NOT_FOUND && tp__group_lost(peers->group, &err) != TP_OK)
      answer = TP__KV_FAILED;
  }
  args->value_free = free_value;
  return explain(answer, args->callback_error, TP__PJRT_DEADLINE_EXCEEDED, &err);
}

static tp__pjrt_error *try_get(tp__pjrt_kv_try_get *args)
{
  tp_error err = {0};
  const tp__peers *peers = args->user;
  tp__kv_answer answer =
      tp__kv_try_get(peers->kv, args->key, args->key_size, &args->value, &args->value_size, &err);
  args->value_free = free_value;
  return explain(answer, args->callback_error, TP__PJRT_NOT_FOUND, &err);
}

static tp__pjrt_error *put(tp__pjrt_kv_put *args)
{
  tp_error err = {0};
  const tp__peers *peers = args->user;
  tp__kv_answer answer =
      tp__kv_put(peers->kv, args->key, args->key_size, args->value, args->value_size, &err);
  return explain(answer, args->callback_error, TP__PJRT_NOT_FOUND, &err);
}

void tp__peers_give(const tp__peers *peers, tp__pjrt_client_create *args)
{
  args->kv_get = get;
  args->kv_try_get = try_get;
  args->kv_put = put;
  void *user = (void *)(uintptr_t)peers;
  args->kv_get_user = args->kv_try_get_user = args->kv_put_user = user;
}
