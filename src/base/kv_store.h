/* kv_store - small values by name, shared by the processes of one training over TCP.
 *
 * Processes that drive one device together (GPUs of several machines) have to tell each other
 * addresses and identities before they can talk through the device. One of them, process 0, serves
 * this store; all of them, it too, are clients.
 *
 *   put      sets a key once; a second put of the same key is refused (TP__KV_EXISTS)
 *   get      waits until the key is there, or the time is over (TP__KV_NOT_FOUND)
 *   try_get  the same without waiting
 *
 * Who may take part is settled by a secret that all processes were given and that never goes over
 * the wire: both sides prove that they know it (HMAC-SHA256 over two fresh random numbers), and
 * every message carries a code made with a key of that connection and the message's number, so that
 * nothing can be injected, changed or repeated. Values are not encrypted: they can be read by who
 * can read the network, and are of use to nobody who lacks the secret.
 *
 * A client opens a connection for each call, so that any number of threads may call at once. Every
 * size is limited, every wait has an end, and who does not prove the secret within seconds is cut
 * off. Files: kv_wire.c (bytes and proofs), kv_server.c, kv_client.c.
 */
#ifndef TP_KV_STORE_H
#define TP_KV_STORE_H

#include "base/base.h"

enum {
  TP__KV_SECRET_MIN = 16,         /* bytes */
  TP__KV_SECRET_MAX = 1024,       /* bytes */
  TP__KV_KEY_MAX = 4096,          /* bytes, at least 1 */
  TP__KV_VALUE_MAX = 16 << 20,    /* bytes */
  TP__KV_STORE_MAX = 256 << 20,   /* bytes of keys and values in all */
  TP__KV_WAIT_MAX = 24 * 3600000, /* milliseconds of a get */
};

typedef struct tp__kv_secret {
  size_t size;
  uint8_t bytes[TP__KV_SECRET_MAX];
} tp__kv_secret;

/* From the file that TEPAL_SECRET_FILE names (it may be readable by its owner only; a line end at
 * its end does not count), else from TEPAL_SECRET. Errors: TP_ERR_USAGE saying how to make one. */
tp_status tp__kv_secret_read(tp__kv_secret *secret, tp_error *err) TP_CHECKED;

/* 32 random bytes. */
tp_status tp__kv_secret_make(tp__kv_secret *secret, tp_error *err) TP_CHECKED;

/* ---- server ---- */

typedef struct tp__kv_server tp__kv_server;

/* address: "HOST:PORT", ":PORT" (all interfaces), "[IPv6]:PORT"; port 0: any that is free. Errors:
 * TP_ERR_USAGE: no such address; TP_ERR_DEVICE: it can't be had. Returns: tp__kv_server_free. */
tp_status tp__kv_server_new(const char *address, const tp__kv_secret *secret,
                            tp__kv_server **server, tp_error *err) TP_CHECKED;
int tp__kv_server_port(const tp__kv_server *server);
/* Cuts off all clients; their calls fail. */
void tp__kv_server_free(tp__kv_server *server);

/* ---- client; the functions may be called by any number of threads at once ---- */

typedef struct tp__kv tp__kv;

typedef enum tp__kv_answer {
  TP__KV_OK,
  TP__KV_NOT_FOUND, /* not there, or not before the time was over */
  TP__KV_EXISTS,
  TP__KV_FAILED /* not reached, refused, too large: the error tells */
} tp__kv_answer;

/* Connects to nothing yet: the server may come up later. patience_ms: for how long a call tries to
 * reach it. Errors: TP_ERR_USAGE. Returns: tp__kv_free. */
tp_status tp__kv_new(const char *address, const tp__kv_secret *secret, int patience_ms, tp__kv **kv,
                     tp_error *err) TP_CHECKED;
void tp__kv_free(tp__kv *kv);

/* *value: a NUL stands behind its *size bytes; caller frees with free(). Unchanged unless
 * TP__KV_OK. */
tp__kv_answer tp__kv_get(tp__kv *kv, const void *key, size_t key_size, int timeout_ms, char **value,
                         size_t *size, tp_error *err);
tp__kv_answer tp__kv_try_get(tp__kv *kv, const void *key, size_t key_size, char **value,
                             size_t *size, tp_error *err);
tp__kv_answer tp__kv_put(tp__kv *kv, const void *key, size_t key_size, const void *value,
                         size_t size, tp_error *err);

#endif
