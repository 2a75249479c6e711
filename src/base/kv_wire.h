/* kv_wire - what server and client of the key-value store say to each other; see kv_store.h.
 *
 *   hello    magic[8] nonce[32]                        both sides, at once
 *   proof    HMAC(secret, "tepal kv client" or "... server", nonce of the server, of the client):
 *            the client's first, then, if it is right, the server's
 *   message  head[13] key value code[32], in turn; head: kind, sizes of key and value, milliseconds
 *            (big-endian)
 *
 * A message's code is HMAC(session, direction, number, head, key, value), session = HMAC(secret,
 * "tepal kv session", both nonces). All calls end by a deadline (tp__now()).
 */
#ifndef TP_KV_WIRE_H
#define TP_KV_WIRE_H

#include <signal.h>

#include "kv_store.h"

enum { TP__KV_HASH = 32, TP__KV_HEAD = 13 };

typedef struct tp__kv_channel {
  int fd;
  bool server;
  const volatile sig_atomic_t *stop; /* not 0: whoever waits ends; NULL: never */
  uint8_t session[TP__KV_HASH];
  uint64_t sent, received; /* messages */
} tp__kv_channel;

/* Kinds of messages. */
enum { TP__KV_GET = 'G', TP__KV_PUT = 'P', TP__KV_ANSWER = 'A' }; /* an answer: A + its number */

typedef struct tp__kv_message {
  uint8_t kind;
  uint32_t key_size, value_size, milliseconds;
  uint8_t *data; /* key, value, NUL; owned when received */
} tp__kv_message;

typedef enum tp__kv_fault {
  TP__KV_FINE,
  TP__KV_CLOSED,      /* by the other side, or an error of the network */
  TP__KV_LATE,        /* the deadline is over */
  TP__KV_STRANGER,    /* no tepal, or another version */
  TP__KV_UNPROVEN,    /* another secret, or somebody has changed a message */
  TP__KV_TOO_LARGE,   /* sizes over their limits */
  TP__KV_NO_RESOURCE, /* memory, random numbers */
  TP__KV_STOPPED      /* asked to */
} tp__kv_fault;

const char *tp__kv_fault_text(tp__kv_fault fault);

/* HOST and PORT of an address; host is empty for all interfaces. */
tp_status tp__kv_address(const char *address, char host[256], char port[8],
                         tp_error *err) TP_CHECKED;

/* A socket that takes connections there, and its port. The errors are those of tp__kv_server_new.
 */
tp_status tp__kv_listen(const char *address, int *fd, int *port, tp_error *err) TP_CHECKED;
static inline bool tp__kv_stopped(const volatile sig_atomic_t *stop)
{
  return stop != NULL && *stop != 0;
}
/* A proven connection, tried for as long as the client is patient: the server may not be up yet (a
 * name nobody knows gets some seconds). stop becomes the channel's. Errors: TP_ERR_DEVICE;
 * TP_STOPPED. The caller closes c->fd. */
tp_status tp__kv_reach(const tp__kv *kv, const volatile sig_atomic_t *stop, tp__kv_channel *c,
                       tp_error *err) TP_CHECKED;

/* The exchange of hello and proof. */
tp__kv_fault tp__kv_meet(tp__kv_channel *c, const tp__kv_secret *secret, double deadline);
/* data of the message: key and value one behind the other. */
tp__kv_fault tp__kv_send(tp__kv_channel *c, const tp__kv_message *m, double deadline);
/* Returns: caller frees m->data, NULL after a fault. */
tp__kv_fault tp__kv_receive(tp__kv_channel *c, tp__kv_message *m, double deadline);

#endif
