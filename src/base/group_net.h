/* group_net - a group over TCP, for processes that nobody has started together (the hosts of a TPU
 * slice, jobs of a scheduler without MPI).
 *
 *   process 0: hub ── one connection ──> each process, 0 too
 *
 * The hub passes on what processes give each other: an exchange is one message to it and one from
 * it. Connections are proven with the secret, and messages have codes, as those of the key-value
 * store (kv_wire.h); they are not encrypted. Everybody sends a pulse each second: who has not been
 * heard of for TEPAL_PROCESS_TIMEOUT seconds (30), or whose connection ends without a farewell, is
 * lost, which the hub tells all. Once all have come nobody else is let in.
 *
 *   JOIN    value: struct tp__net_join                          to the hub, first
 *   READY   value: hosts [count][TP__NET_HOST]                  from it, when all have come
 *   PART    value: sizes [count] (u64), then the pieces, of which a message has up to PART_MAX
 *           bytes; milliseconds: whether more parts follow      both ways
 *   PULSE                                                       both ways
 *   FAIL    milliseconds: status, value: text                   both ways; the hub tells it to all
 *   BYE                                                         to the hub, last
 *
 * Files: group_net.c (a process), group_hub.c. Numbers are those of the processors, which have to
 * be of one kind anyway.
 */
#ifndef TP_GROUP_NET_H
#define TP_GROUP_NET_H

#include "group.h"
#include "kv_wire.h"

enum {
  TP__NET_JOIN = 'J',
  TP__NET_READY = 'R',
  TP__NET_PART = 'X',
  TP__NET_PULSE = 'T',
  TP__NET_FAIL = 'F',
  TP__NET_BYE = 'B',
};
enum {
  TP__NET_HOST = 64,
  TP__NET_PART_MAX = 4 << 20, /* bytes */
  TP__NET_MEET = 300,         /* seconds that the first one waits for the last */
};

typedef struct tp__net_join {
  int32_t rank, count;
  char host[TP__NET_HOST];
} tp__net_join;

/* A place among processes: as the environment says. */
typedef struct tp__net_place {
  int rank, count;
  char address[272]; /* HOST:PORT of the hub, as all reach it */
} tp__net_place;

/* patience: seconds to wait for the others (TP__NET_MEET). wait: may be NULL. Returns:
 * tp__group_free. */
tp_status tp__group_net(const tp__net_place *place, const tp__kv_secret *secret, int patience,
                        const tp__group_wait *wait, tp__group **group, tp_error *err) TP_CHECKED;

/* The hub serves until it is freed. address: where it listens; log: for strangers that come before
 * all members have. */
typedef struct tp__hub tp__hub;
tp_status tp__hub_new(const char *address, const tp__kv_secret *secret, int count, int patience,
                      const tp__log *log, tp__hub **hub, tp_error *err) TP_CHECKED;
void tp__hub_free(tp__hub *hub);

/* Said behind the name of a process whose connection is gone. */
extern const char tp__net_ended[];
/* Sends bytes as parts. The caller alone sends. */
tp__kv_fault tp__net_send_parts(tp__kv_channel *c, const void *data, size_t size, double deadline);
/* Adds a part; *whole: it was the last. */
tp_status tp__net_take_part(tp__buffer *into, const tp__kv_message *m, bool *whole, tp_error *err);
/* One message without key. */
tp__kv_fault tp__net_send(tp__kv_channel *c, uint8_t kind, uint32_t number, const void *value,
                          size_t size, double deadline);

#endif
