/* group_open - whether this process was started as one of several; see group.h
 *
 * mpirun and its like say so by themselves. Otherwise the environment does:
 *
 *   TEPAL_PROCESSES   how many there are; or "tpu": as many as TPU_WORKER_HOSTNAMES has names, and
 *                     this is the one that TPU_WORKER_ID says, on the first of which is process 0
 *   TEPAL_PROCESS     the number of this one, from 0
 *   TEPAL_ADDRESS     HOST:PORT of process 0
 *   TEPAL_SECRET_FILE, TEPAL_SECRET   what proves who belongs to it (kv_store.h)
 */
#include <stdlib.h>
#include <string.h>

#include "group_mpi.h"
#include "group_net.h"

enum { PORT = 7979 };

/* A variable that is set to something. */
static const char *variable(const char *name)
{
  const char *text = getenv(name);
  return text != NULL && text[0] != '\0' ? text : NULL;
}

/* ---- by the environment ---- */

static long number_in(const char *name)
{
  const char *text = variable(name);
  char *stop = NULL;
  long number = text != NULL ? strtol(text, &stop, 10) : -1;
  return text != NULL && stop != text && *stop == '\0' && number >= 0 ? number : -1;
}

static bool is_slice(void)
{
  const char *text = variable("TEPAL_PROCESSES");
  return text != NULL && strcmp(text, "tpu") == 0;
}

/* -1: it says nonsense. */
static long count_named(void)
{
  if (!is_slice()) return number_in("TEPAL_PROCESSES");
  const char *names = variable("TPU_WORKER_HOSTNAMES");
  long count = names != NULL ? 1 : -1;
  for (; names != NULL && *names != '\0'; names++) count += *names == ',';
  return count;
}

static tp_status read_place(tp__net_place *place, tp_error *err)
{
  const char *id = is_slice() ? "TPU_WORKER_ID" : "TEPAL_PROCESS", *names = NULL;
  long count = count_named(), rank = number_in(id);
  const char *address = variable("TEPAL_ADDRESS"), *said = variable("TEPAL_PROCESSES");
  if (said == NULL)
    return tp__fail(err, TP_ERR_USAGE,
                    "environment variable TEPAL_PROCESSES: is not set, but TEPAL_PROCESS is; "
                    "wanted is how many there are");
  if (count < 1 || count > TP__PROCESSES_MAX)
    return tp__fail(err, TP_ERR_USAGE,
                    "environment variable TEPAL_PROCESSES: \"%s\"; wanted is a number up to %d, or "
                    "\"tpu\" where TPU_WORKER_HOSTNAMES is set",
                    said, TP__PROCESSES_MAX);
  if (rank < 0 || rank >= count)
    return tp__fail(err, TP_ERR_USAGE,
                    "environment variable %s: %s; wanted is the number of this process, 0 to %ld",
                    id, variable(id) != NULL ? variable(id) : "is not set", count - 1);
  if (address == NULL && !is_slice())
    return tp__fail(
        err, TP_ERR_USAGE,
        "environment variable TEPAL_ADDRESS: is not set; wanted is HOST:PORT of process "
        "0");
  if (address == NULL) names = variable("TPU_WORKER_HOSTNAMES");
  if ((address != NULL ? strlen(address) : strcspn(names, ",")) > 255)
    return tp__fail(err, TP_ERR_USAGE, "the address of process 0 is too long");
  *place = (tp__net_place){.rank = (int)rank, .count = (int)count};
  if (address != NULL)
    snprintf(place->address, sizeof place->address, "%s", address);
  else
    snprintf(place->address, sizeof place->address, "%.*s:%d", (int)strcspn(names, ","), names,
             PORT);
  return TP_OK;
}

static tp_status open_named(const tp__group_wait *wait, tp__group **group, tp_error *err)
{
  tp__net_place place = {0};
  tp__kv_secret secret;
  TP__TRY(read_place(&place, err));
  if (place.count == 1) return TP_OK;
  TP__TRY(tp__kv_secret_read(&secret, err));
  return tp__group_net(&place, &secret, TP__NET_MEET, wait, group, err);
}

/* ---- by a starter ---- */

/* Open MPI's mpirun, and those that speak PMI or PMIx. */
static long count_started(bool here)
{
  const char *size = getenv(here ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "OMPI_COMM_WORLD_SIZE");
  if (size == NULL && getenv("PMI_RANK") != NULL)
    size = getenv(here ? "MPI_LOCALNRANKS" : "PMI_SIZE");
  if (size == NULL && getenv("PMIX_RANK") != NULL)
    size = getenv(here ? "SLURM_NTASKS_PER_NODE" : "SLURM_NTASKS");
  long count = size != NULL ? strtol(size, NULL, 10) : 1;
  return count < 1 ? 1 : count;
}

/* TEPAL_PROCESS alone: whoever set it did not mean a run by itself, beside others like it. */
static bool is_named(void)
{
  return variable("TEPAL_PROCESSES") != NULL || variable("TEPAL_PROCESS") != NULL;
}

long tp__group_started(bool here)
{
  if (!is_named()) return count_started(here);
  long count = here ? 1 : count_named();
  return count < 1 ? 2 : count; /* what is wrong is told when it is opened */
}

tp_status tp__group_open(const tp__group_wait *wait, tp__group **group, tp_error *err)
{
  *group = NULL;
  if (is_named()) return open_named(wait, group, err);
  long size = count_started(false);
  if (size <= 1) return TP_OK;
  if (size > TP__PROCESSES_MAX)
    return tp__fail(err, TP_ERR_DEVICE, "%ld processes; %d at most can train together", size,
                    TP__PROCESSES_MAX);
#ifdef TP__MPI
  return tp__group_mpi(group, err);
#else
  return tp__fail(err, TP_ERR_DEVICE,
                  "this is one of %ld processes, but tepal was built without MPI and would train "
                  "%ld networks: install libopenmpi-dev and build it again",
                  size, size);
#endif
}
