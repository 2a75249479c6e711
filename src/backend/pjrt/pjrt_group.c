/* pjrt_group - several processes, each with devices of its own, as one device; see pjrt_state.h
 *
 *   group ──> address and secret of process 0's store ──> plugins meet there (GPUs)
 *   libtpu finds the other hosts of its slice by itself (TPUs)
 *
 * Each process then has a client that knows the devices of all and runs programs on its own. All
 * must have equally many of the same kind: every replica has the same number of rows.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/kv_store.h"
#include "pjrt_state.h"

enum { STORE_PATIENCE_MS = 60000, HOST = 256 };

/* ---- which GPUs ---- */

/* Whether who started the processes has shown each one other GPUs. */
static tp_status are_bound(tp__group *g, bool *bound, tp_error *err)
{
  const char *shown = getenv("CUDA_VISIBLE_DEVICES");
  uint64_t own = shown != NULL ? tp__hash_add_text(TP__HASH_BEGIN, shown) : 0;
  uint64_t all[TP__PROCESSES_MAX];
  TP__TRY(tp__group_gather(g, &own, sizeof own, all, err));
  *bound = false;
  for (int r = 1; r < g->size; r++) *bound = *bound || all[r] != all[0];
  return TP_OK;
}

/* The processes of a machine share its GPUs, by their order. *count 0: all that are seen. */
static tp_status choose_gpus(const tp__pjrt_options *o, int64_t **list, int *count, tp_error *err)
{
  tp__group *g = o->group;
  bool bound = false;
  TP__TRY(are_bound(g, &bound, err));
  int seen = o->devices, each = o->replicas > 0 ? o->replicas : seen / g->local;
  tp_status status = TP_OK;
  *count = 0;
  if (o->kind != TP__CLASS_GPU || seen == 0 || bound || (g->local == 1 && o->replicas == 0))
    return tp__group_agree(g, status, err);
  if (each == 0 || each * g->local > seen)
    status =
        tp__fail(err, TP_ERR_DEVICE, "%d processes on this machine want %d GPU%s each, it has %d",
                 g->local, each > 0 ? each : 1, each > 1 ? "s" : "", seen);
  else if ((*list = tp__calloc((size_t)each, sizeof **list, err)) == NULL)
    status = TP_ERR_INTERNAL;
  for (int i = 0; status == TP_OK && i < each; i++) (*list)[i] = g->local_rank * each + i;
  *count = each;
  return tp__group_agree(g, status, err);
}

/* ---- the store ---- */

struct invitation {
  char address[HOST + 16];
  tp__kv_secret secret;
};

/* On a machine of its own for all processes nobody else can reach it; otherwise it is on all
 * interfaces, under the name in TEPAL_ADDRESS (whose port is the group's, if it has one) or the
 * machine's. */
static tp_status serve(tp__meeting *m, const tp__group *g, struct invitation *in, tp_error *err)
{
  const char *given = getenv("TEPAL_ADDRESS");
  const char *colon = given != NULL ? strrchr(given, ':') : NULL;
  size_t length = colon != NULL ? (size_t)(colon - given) : given != NULL ? strlen(given) : 0;
  char host[HOST] = "127.0.0.1";
  bool here = g->local == g->size;
  if (length >= sizeof host)
    return tp__fail(err, TP_ERR_USAGE, "environment variable TEPAL_ADDRESS: is too long");
  if (!here && length > 0)
    snprintf(host, sizeof host, "%.*s", (int)length, given);
  else if (!here && gethostname(host, sizeof host - 1) != 0)
    return tp__fail(err, TP_ERR_DEVICE,
                    "this machine has no name: set TEPAL_ADDRESS to its address");
  TP__TRY(tp__kv_secret_make(&in->secret, err));
  TP__TRY(tp__kv_server_new(here ? "127.0.0.1:0" : ":0", &in->secret, &m->server, err));
  snprintf(in->address, sizeof in->address, "%s:%d", host, tp__kv_server_port(m->server));
  return TP_OK;
}

/* Process 0 serves the store and tells the others where, and the secret. */
static tp_status open_store(tp__meeting *m, tp__group *g, tp_error *err)
{
  struct invitation own = {0}, *all = tp__calloc((size_t)g->size, sizeof *all, err);
  tp_status status = all == NULL ? TP_ERR_INTERNAL : TP_OK;
  if (status == TP_OK && g->rank == 0) status = serve(m, g, &own, err);
  status = tp__group_agree(g, status, err);
  if (status == TP_OK) status = tp__group_gather(g, &own, sizeof own, all, err);
  if (status == TP_OK) {
    all[0].address[sizeof all[0].address - 1] = '\0';
    status = tp__kv_new(all[0].address, &all[0].secret, STORE_PATIENCE_MS, &m->peers.kv, err);
  }
  free(all);
  return tp__group_agree(g, status, err);
}

/* ---- the client ---- */

static tp_status make_client(tp__pjrt *p, const tp__pjrt_options *o, tp_error *err)
{
  int64_t *gpu = NULL;
  int gpus = 0;
  tp_status status = choose_gpus(o, &gpu, &gpus, err);
  if (status == TP_OK && o->kind != TP__CLASS_TPU) status = open_store(&p->meeting, o->group, err);
  if (status == TP_OK) {
    const tp__client_option option[] = {
        {.name = "cpu_device_count", .number = o->replicas > 0 ? o->replicas : 1},
        {.name = "visible_devices", .list = gpu, .number = gpus}};
    bool cpu = o->kind == TP__CLASS_CPU;
    status = tp__client_join(p->plugin, cpu ? option : option + 1, cpu || gpus > 0,
                             &p->meeting.peers, &p->client, err);
    status = tp__group_agree(o->group, status, err);
  }
  free(gpu);
  return status;
}

struct party {
  int32_t own, all;
  char kind[120];
};

static tp_status check_devices(tp__pjrt *p, const tp__pjrt_options *o, tp_error *err)
{
  tp__group *g = o->group;
  struct party own = {.own = tp__client_devices(p->client),
                      .all = tp__client_all_devices(p->client)};
  snprintf(own.kind, sizeof own.kind, "%s", tp__client_device_kind(p->client, 0));
  struct party *all = tp__calloc((size_t)g->size, sizeof *all, err);
  tp_status status =
      all == NULL ? TP_ERR_INTERNAL : tp__group_gather(g, &own, sizeof own, all, err);
  for (int r = 1; status == TP_OK && r < g->size; r++) {
    all[r].kind[sizeof own.kind - 1] = '\0';
    if (all[r].own != all[0].own || strcmp(all[r].kind, all[0].kind) != 0)
      status = tp__fail(err, TP_ERR_DEVICE,
                        "process %d has %d of %s, process 0 %d of %s: all need equally many "
                        "of one kind",
                        r, (int)all[r].own, all[r].kind, (int)all[0].own, all[0].kind);
  }
  if (status == TP_OK && own.all != own.own * g->size)
    status = tp__fail(err, TP_ERR_DEVICE,
                      "%s, as its plugin is used here, knows of %d devices in all, not of %d "
                      "in each of %d processes: it does not join processes, or these are not all "
                      "the hosts of its slice",
                      own.kind, (int)own.all, (int)own.own, g->size);
  if (status == TP_OK && o->replicas > 0 && o->replicas != own.own)
    status = tp__fail(err, TP_ERR_USAGE,
                      "replicas: %d: of several processes each takes all of its %d devices",
                      o->replicas, (int)own.own);
  free(all);
  return tp__group_agree(g, status, err);
}

tp_status tp__pjrt_meet(tp__pjrt *p, const tp__pjrt_options *o, tp_error *err)
{
  tp__group *g = o->group;
  tp_status status = TP_OK;
  p->meeting.peers = (tp__peers){.rank = g->rank, .count = g->size, .group = g};
  if (o->kind == TP__CLASS_TPU && g->local > 1 && getenv("TPU_PROCESS_BOUNDS") == NULL)
    status = tp__fail(err, TP_ERR_DEVICE,
                      "%d processes on this machine, but one drives all of its TPU chips: "
                      "start one on each machine",
                      g->local);
  status = tp__group_agree(g, status, err);
  if (status == TP_OK) status = make_client(p, o, err);
  if (status == TP_OK) status = check_devices(p, o, err);
  if (status != TP_OK) return status;
  p->own = tp__client_devices(p->client);
  p->base.replicas = p->own * g->size;
  p->base.group = g;
  return TP_OK;
}

void tp__pjrt_part(tp__pjrt *p)
{
  tp__kv_free(p->meeting.peers.kv);
  tp__kv_server_free(p->meeting.server);
}
